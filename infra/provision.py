"""Deploys main.bicep, and keeps what nobody has set: the image that runs and the secrets that are there.

    TOOLHOST_SECRET=… python infra/provision.py --group RG --parameters infra/main.bicepparam

The parameter file reads IMAGE, TOOLHOST_SECRET and REQUEST_STATE_KEYS from the environment. What is not set there, or
is empty, is taken from the app in that resource group; `none` takes a secret away. Needs the Azure CLI, logged in.
Three replicas without keys, or with other rooms than only, are not deployed. Ends with 0 if the deployment succeeded,
else with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from azure_cli import AzureError, az

# variable -> the secret of the app (modules/app.bicep)
SECRETS = {"TOOLHOST_SECRET": "toolhost-secret", "REQUEST_STATE_KEYS": "request-state-keys"}
# The container of modules/proxy.bicep.
PROXY = "haproxy"
# What main.bicep is told before there is an app.
FIRST = {"IMAGE": "", "TOOLHOST_SECRET": "none", "REQUEST_STATE_KEYS": "none"}


def the_app(group: str) -> dict[str, Any] | None:
    """The container app of a group, of its replicas the first; None if there is none. Raises `AzureError`.

    A deployment that failed may have made some of the replicas only.
    """
    apps: list[dict[str, Any]] = json.loads(az("containerapp", "list", "--resource-group", group, "--output", "json"))
    probes = [app for app in apps if app["properties"]["template"]["containers"][0].get("name") != PROXY]
    probes.sort(key=lambda app: str(app["name"]))
    names = [app["name"] for app in probes]
    stems = {re.sub("-[123]$", "", name) for name in names}
    if len(names) > 1 and (len(stems) > 1 or stems & set(names)):
        raise AzureError(f"{group} has {len(probes)} container apps, and which of them is the probe is unknown")
    return probes[0] if probes else None


def there(group: str) -> dict[str, str]:
    """What the app has at this moment, by variable; nothing where there is no app. Raises `AzureError`."""
    app = the_app(group)
    if app is None:
        return {}
    named = ("--resource-group", group, "--name", app["name"])
    listed = json.loads(az("containerapp", "secret", "list", *named, "--show-values", "--output", "json"))
    values = {secret["name"]: secret["value"] for secret in listed}
    secrets = {variable: values[name] for variable, name in SECRETS.items() if name in values}
    return {"IMAGE": app["properties"]["template"]["containers"][0]["image"], **secrets}


def check_replicas(parameters: str, keys: str) -> None:
    """Three replicas know the rooms of each other by keys, and nothing else. Raises `AzureError`."""
    try:
        text = Path(parameters).read_text()
    except OSError as error:
        raise AzureError(f"{parameters}: {error.strerror}") from None
    given = dict(re.findall(r"^param (replicas|rooms) *= *'?(\w+)", text, re.MULTILINE))
    if given.get("replicas") == "3" and (given.get("rooms", "only") != "only" or keys == "none"):
        raise AzureError("replicas = 3 needs rooms = 'only' and REQUEST_STATE_KEYS")


def provision(group: str, parameters: str) -> None:
    """Deploy. Raises `AzureError`.

    If it could not be found out what is there, or the parameters are wrong, nothing was deployed.
    """
    given = {name: os.environ[name] for name in FIRST if os.environ.get(name)}
    kept = {name: value for name, value in there(group).items() if name not in given}
    print(f"set: {', '.join(given) or 'nothing'}; kept: {', '.join(kept) or 'nothing'}", flush=True)
    # secrets go by the environment: others can read a command line
    variables = {**os.environ, **FIRST, **kept, **given}
    check_replicas(parameters, variables["REQUEST_STATE_KEYS"])
    named = ("--resource-group", group, "--name", "probe")
    az("deployment", "group", "create", *named, "--parameters", parameters, "--output", "none", env=variables)


def main(arguments: list[str]) -> int:
    """Deploy one resource group; returns the exit code."""
    parser = argparse.ArgumentParser(description="Deploy main.bicep and keep the secrets that are there.")
    parser.add_argument("--group", required=True, help="the resource group, which holds nothing but the probe")
    parser.add_argument("--parameters", required=True, help="the .bicepparam file")
    given = parser.parse_args(arguments)
    try:
        provision(given.group, given.parameters)
    except AzureError as error:
        print(f"not deployed: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
