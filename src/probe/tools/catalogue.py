"""Everything this server has to offer, in the order in which clients see it."""

from __future__ import annotations

from typing import Final

from ..engine.catalogue.catalogue import Toolset
from . import dispatch, probe, skills, streaming
from .conformance import content, questions, resources, schema, stateless, tasks
from .features import definitions, notifications, results
from .features import prompts as feature_prompts
from .features import questions as feature_questions
from .features import resources as feature_resources

PROBE: Final = Toolset(
    "probe",
    (
        probe.SIMPLE_TOOL,
        probe.SYNC_WITH_PROGRESS,
        probe.PURE_TASK,
        probe.TASK_WITH_PROGRESS,
        probe.CANCELLABLE_TASK,
        probe.MULTI_STAGE_TASK,
        probe.FAILING_TASK,
        probe.PAUSABLE_TASK,
        probe.SAMPLING_DEMO,
    ),
)

STREAMING: Final = Toolset("streaming", (streaming.PROGRESS, streaming.LONG_OUTPUT, streaming.CHATTY))

FEATURES: Final = Toolset(
    "features",
    (
        notifications.LOG_LEVELS,
        *feature_questions.FORMS,
        *feature_questions.TOOLS,
        notifications.ANNOUNCE_LIST_CHANGE,
        results.STRUCTURED_OUTPUT,
        results.CONTENT_TYPES,
        results.FAIL,
        *definitions.HINTS,
        definitions.ROUTED_TOOL,
    ),
    resources=feature_resources.RESOURCES,
    templates=feature_resources.TEMPLATES,
    prompts=feature_prompts.PROMPTS,
)

DISPATCH: Final = Toolset(
    "dispatch", (dispatch.SILENT_CALL, dispatch.PROGRESS_BEYOND_CEILING, dispatch.PROGRESS_GAP, dispatch.BULK_EXPORT)
)

# `content` comes first for its first tool, test_simple_text: the official suite calls the first tool of the list
# without arguments.
CONFORMANCE: Final = Toolset(
    "conformance",
    (
        *content.TOOLS,
        *content.NOTIFYING,
        *questions.ASKING,
        *schema.TOOLS,
        *content.POLLING,
        *schema.HEADER,
        *stateless.TOOLS,
        *questions.INPUT_REQUIRED,
        *tasks.TOOLS,
    ),
    resources=resources.RESOURCES,
    templates=resources.TEMPLATES,
    prompts=resources.PROMPTS,
    skills=skills.CONFORMANCE_SKILLS,
)

SKILLS: Final = Toolset("skills", (), skills=skills.SKILLS)

TOOLSETS: Final[tuple[Toolset, ...]] = (PROBE, STREAMING, FEATURES, DISPATCH, CONFORMANCE, SKILLS)
