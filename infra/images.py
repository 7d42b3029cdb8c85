"""Which images the registry has, and which of them are old.

A build pushes several manifests: an index, which has the tag, and its parts, which have none (one for the platform, one
that says how it was built). A part that is gone makes its index useless, so the parts of what is kept are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from azure_cli import AzureError, az


def named(image: str) -> tuple[str, str]:
    """The repository and the digest of an image, which is named REGISTRY/REPOSITORY@sha256:… in full."""
    where, _, digest = image.partition("@")
    return where.partition("/")[2], digest


@dataclass(frozen=True)
class Repository:
    """One repository of an Azure container registry."""

    registry: str
    name: str

    def purge(self, serving: str, others: Iterable[str], newest: int) -> list[str]:
        """Delete what is older than every image that is kept; returns the digests.

        Kept are the image that serves, the `others`, the `newest` (1 or more) with a tag, and the parts of all of them.
        What is being pushed at this moment is newer, so it is not touched. Raises `AzureError`, `ValueError` or
        `KeyError` for what the registry does not say as expected, before anything is deleted, and `AzureError` when a
        deletion has failed.
        """
        listed = self._listed()
        created = {manifest["digest"]: datetime.fromisoformat(manifest["createdTime"]) for manifest in listed}
        if serving not in created:
            raise AzureError(f"{self.registry} does not list {self.name}@{serving}, which serves")
        tagged = sorted((manifest["digest"] for manifest in listed if manifest.get("tags")), key=created.__getitem__)
        kept = {serving, *others, *tagged[-newest:]} & created.keys()
        oldest = min(created[digest] for digest in kept)
        old = {digest for digest in created if created[digest] < oldest} - self._parts(kept)
        # newest first: an index is newer than its parts, and goes before them
        deleted = sorted(old, key=created.__getitem__, reverse=True)
        for digest in deleted:
            self._delete(digest)
        return deleted

    def _listed(self) -> list[dict[str, Any]]:
        named = ("--registry", self.registry, "--name", self.name)
        listed: list[dict[str, Any]] = json.loads(az("acr", "manifest", "list-metadata", *named, "--output", "json"))
        return listed

    def _parts(self, images: Iterable[str]) -> set[str]:
        found: set[str] = set()
        unread = list(images)
        while unread:
            image = f"{self.name}@{unread.pop()}"
            manifest = json.loads(az("acr", "manifest", "show", "--registry", self.registry, "--name", image, "--raw"))
            parts = {part["digest"] for part in manifest.get("manifests", ())} - found
            found |= parts
            unread += parts
        return found

    def _delete(self, digest: str) -> None:
        image = f"{self.name}@{digest}"
        az("acr", "repository", "delete", "--name", self.registry, "--image", image, "--yes", "--output", "none")
