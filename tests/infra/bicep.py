"""Checks Bicep files as far as that goes without their compiler, which comes from no package registry.

`pycep` parses them. What a resource says is held against the models of Azure's own Python packages of the same API
version: names, kinds of values, what only Azure may set. Names that an expression uses must exist. The compiler itself
runs in the workflow `check`.
"""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import azure.mgmt.appcontainers.models as apps
import azure.mgmt.containerregistry.models as registries
import azure.mgmt.loganalytics.models as logs
import azure.mgmt.msi.v2024_11_30.models as identities
from pycep import BicepParser

# resource type -> API version, and the model of its body
MODELS: dict[str, tuple[str, type]] = {
    "Microsoft.App/containerApps": ("2026-07-01", apps.ContainerApp),
    "Microsoft.App/managedEnvironments": ("2026-07-01", apps.ManagedEnvironment),
    "Microsoft.App/managedEnvironments/managedCertificates": ("2026-07-01", apps.ManagedCertificate),
    "Microsoft.ContainerRegistry/registries": ("2025-11-01", registries.Registry),
    "Microsoft.OperationalInsights/workspaces": ("2025-07-01", logs.Workspace),
    "Microsoft.ManagedIdentity/userAssignedIdentities": ("2024-11-30", identities.Identity),
    "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials": (
        "2024-11-30",
        identities.FederatedIdentityCredential,
    ),
}
# no package has them in a form that can be read here; from the reference of the resource type
ROLE_ASSIGNMENT = ("2022-04-01", {"principalId", "principalType", "roleDefinitionId"})
# what Bicep itself adds to a body
OF_BICEP = {"name", "parent", "scope", "dependsOn"}
_CALLED = {"resourceGroup", "subscription", "deployment"}
_WORDS = {"true", "false", "null", "if", "for", "in"}


def parsed(file: Path) -> dict[str, Any]:
    """A file as a tree. Raises what the parser raises."""
    return _parsed(file.read_text())


@lru_cache  # a second for each
def _parsed(text: str) -> dict[str, Any]:
    return BicepParser().parse(text=text)


def wrong_names(file: Path) -> list[str]:
    """Names that an expression uses and nothing declares."""
    tree = parsed(file)
    known = {name for part in ("parameters", "variables", "resources", "modules") for name in tree.get(part, {})}
    text = _code(file.read_text())
    loops = set(re.findall(r"\[\s*for\s+(\w+)\s+in", text))
    return sorted({name for name in _used(text) if name not in known | loops | _CALLED | _WORDS})


def unused(file: Path) -> list[str]:
    """Parameters and variables that nothing uses."""
    tree = parsed(file)
    used = set(_used(_code(file.read_text())))
    return sorted(name for part in ("parameters", "variables") for name in tree.get(part, {}) if name not in used)


def _code(text: str) -> str:
    """The text without comments, descriptions and literals; what is inserted into a literal stays."""
    text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^@description\(.*\)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(targetScope|using) .*$", "", text, flags=re.MULTILINE)

    def inserted(literal: re.Match[str]) -> str:
        return " " + " ".join(re.findall(r"\$\{(.*?)\}", _flat(literal[0]))) + " "

    return re.sub(r"'(?:\$\{(?:[^{}']|'[^']*')*\}|\\.|[^'\\])*'", inserted, text)


def _flat(literal: str) -> str:
    # literals within an insertion: only what is beside them are names
    return re.sub(r"(?<=[(, ])'[^']*'(?=[), ])", "", literal)


def _used(text: str) -> Iterator[str]:
    """Words where an expression stands that are no member, key or function."""
    for line in text.splitlines():
        declared = re.match(r"\s*(?:param|var|output|resource|module)\s+\w+(?:\s+\w+)?(.*)", line)
        rest = declared[1] if declared else line
        for found in re.finditer(r"(?<![\w.])([A-Za-z_]\w*)(?=(\s*\()?)(?=(\s*:(?!:))?)", rest):
            name, call, key = found[1], found[2], found[3]
            if not call and not (key and _is_key(rest, found.start())):
                yield name


def _is_key(line: str, start: int) -> bool:
    # a key begins a line or follows { or ,; otherwise the colon belongs to a condition
    before = line[:start].rstrip()
    return not before or before[-1] in "{,"


class Body:
    """Holds one resource against the model of its type; `faults` says what is wrong."""

    def __init__(self, kind: str, version: str, body: dict[str, Any], tree: dict[str, Any]) -> None:
        self.faults: list[str] = []
        self.variables = tree.get("variables", {})
        # the parser's tree does not tell a name from a literal
        self.names = self.variables.keys() | tree.get("parameters", {}).keys()
        own = {key: value for key, value in body.items() if key not in OF_BICEP}
        if kind == "Microsoft.Authorization/roleAssignments":
            self._expect(version == ROLE_ASSIGNMENT[0], f"version {version}")
            self._expect(set(own.get("properties", {})) == ROLE_ASSIGNMENT[1], "properties of a role assignment")
            return
        wanted, model = MODELS[kind]
        self._expect(version == wanted, f"{kind} is of {version}, and the model of {wanted}")
        self._object(model, own, kind)

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.faults.append(what)

    def _object(self, model: type, value: Any, where: str) -> None:
        for part in self._alternatives(value):
            if isinstance(part, dict):
                self._members(fields(model), part, where)

    def _members(self, known: dict[str, Any], value: dict[str, Any], where: str) -> None:
        for key, inner in value.items():
            name = key.strip("'")
            if name not in known:
                self.faults.append(f"{where}.{name} is unknown")
            elif known[name] is READ_ONLY:
                self.faults.append(f"{where}.{name} is set by Azure alone")
            elif isinstance(known[name], dict):
                self._members(known[name], inner, f"{where}.{name}")
            else:
                self._value(known[name], inner, f"{where}.{name}")

    def _value(self, kind: Any, value: Any, where: str) -> None:
        for part in self._alternatives(value):
            if inspect.isclass(kind) and issubclass(kind, enum.Enum):
                allowed = [member.value for member in kind]
                fine = part in allowed or not self._is_literal(part)
                self._expect(fine, f"{where} is {part!r}, not one of {allowed}")
            elif typing.get_origin(kind) is list:
                for item in part if isinstance(part, list) else []:
                    self._value(typing.get_args(kind)[0], item, f"{where}[]")
            elif inspect.isclass(kind) and (fields(kind) or isinstance(part, dict)) and kind not in (dict, object):
                self._expect(isinstance(part, dict | str), f"{where} is {part!r} and no object")
                self._object(kind, part, where)
            elif kind in (int, bool) and not isinstance(part, str | dict):
                self._expect(type(part) is kind, f"{where} is {part!r} and no {kind.__name__}")

    def _is_literal(self, value: Any) -> bool:
        return isinstance(value, str) and "${" not in value and value not in self.names

    def _alternatives(self, value: Any) -> Iterator[Any]:
        """What an expression may come to: both sides of a condition, parts of a concatenation, a variable's value."""
        if isinstance(value, str) and value in self.variables:
            yield from self._alternatives(self.variables[value]["value"])
        elif isinstance(value, dict) and value.keys() == {"operator"}:
            operands = value["operator"]["operands"]
            for side in ("true_value", "false_value"):
                if side in operands:
                    yield from self._alternatives(operands[side])
        elif isinstance(value, dict) and value.keys() == {"function"}:
            if value["function"]["type"] == "concat":
                for part in value["function"]["parameters"].values():
                    yield from self._alternatives(part)
        else:
            yield value


READ_ONLY = object()


def fields(model: Any) -> dict[str, Any]:
    """What a model has, by the names on the wire; nothing for what is no model."""
    if hasattr(model, "_attribute_map"):
        return _flattened(model)
    if not getattr(model, "_is_model", False):
        return {}
    model()  # the fields are collected with the first one
    found: dict[str, Any] = {}
    hints: dict[str, Any] = {}
    for base in reversed(model.__mro__):
        hints |= getattr(base, "__annotations__", {})
    for attribute, rest in model._attr_to_rest_field.items():
        read_only = rest._visibility == ["read"]
        found[rest._rest_name] = READ_ONLY if read_only else _resolved(hints.get(attribute, object), model)
    return found


def _flattened(model: Any) -> dict[str, Any]:
    """The older kind of model, whose keys are paths: properties.issuer."""
    found: dict[str, Any] = {}
    for attribute, spec in model._attribute_map.items():
        read_only = model._validation.get(attribute, {}).get("readonly", False)
        *path, last = spec["key"].split(".")
        inner = found
        for step in path:
            inner = inner.setdefault(step, {})
        inner[last] = READ_ONLY if read_only else object
    return found


def _resolved(hint: Any, model: type) -> Any:
    """The one kind behind Optional, Union[str, Enum] and names that are written as text."""
    module = inspect.getmodule(model)
    package = {"_models": module, "_types": module}
    if isinstance(hint, typing.ForwardRef | str):
        name = (hint if isinstance(hint, str) else hint.__forward_arg__).rpartition(".")[2]
        return getattr(package["_models"], name, None) or getattr(apps, name, None) or getattr(registries, name, object)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kinds = [_resolved(part, model) for part in typing.get_args(hint) if part is not type(None)]
        return next((kind for kind in kinds if kind is not str), str)
    if typing.get_origin(hint) is list:
        return list[_resolved(typing.get_args(hint)[0], model)]
    return dict if typing.get_origin(hint) is dict else hint
