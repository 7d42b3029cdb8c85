"""Everything this server has to offer, in the order in which clients see it."""

from __future__ import annotations

from typing import Final

from ..engine.catalogue.catalogue import Toolset
from .conformance import (
    client_requests,
    content,
    headers,
    input_required,
    polling,
    progress_and_logging,
    prompts,
    resources,
    schema,
    stateless,
    tasks,
)
from .dispatch import bulk_export, progress_beyond_ceiling, progress_gap, silent_call
from .features import (
    announce_list_change,
    content_types,
    elicitation,
    fail,
    hints,
    log_levels,
    questions,
    routed_tool,
    structured_output,
)
from .features import prompts as feature_prompts
from .features import resources as feature_resources
from .probe import (
    cancellable_task,
    failing_task,
    multi_stage_task,
    pausable_task,
    pure_task,
    sampling_demo,
    simple_tool,
    sync_with_progress,
    task_with_progress,
)
from .skills import skills
from .streaming import chatty, long_output, progress

PROBE: Final = Toolset(
    "probe",
    (
        simple_tool.TOOL,
        sync_with_progress.TOOL,
        pure_task.TOOL,
        task_with_progress.TOOL,
        cancellable_task.TOOL,
        multi_stage_task.TOOL,
        failing_task.TOOL,
        pausable_task.TOOL,
        sampling_demo.TOOL,
    ),
)

STREAMING: Final = Toolset("streaming", (progress.TOOL, long_output.TOOL, chatty.TOOL))

FEATURES: Final = Toolset(
    "features",
    (
        log_levels.TOOL,
        *elicitation.TOOLS,
        *questions.TOOLS,
        announce_list_change.TOOL,
        structured_output.TOOL,
        content_types.TOOL,
        fail.TOOL,
        *hints.TOOLS,
        routed_tool.TOOL,
    ),
    resources=feature_resources.RESOURCES,
    templates=feature_resources.TEMPLATES,
    prompts=feature_prompts.PROMPTS,
)

DISPATCH: Final = Toolset(
    "dispatch", (silent_call.TOOL, progress_beyond_ceiling.TOOL, progress_gap.TOOL, bulk_export.TOOL)
)

# `content` comes first for its first tool, test_simple_text: the official suite calls the first tool of the list
# without arguments.
CONFORMANCE: Final = Toolset(
    "conformance",
    (
        *content.TOOLS,
        *progress_and_logging.TOOLS,
        *client_requests.TOOLS,
        *schema.TOOLS,
        *polling.TOOLS,
        *headers.TOOLS,
        *stateless.TOOLS,
        *input_required.TOOLS,
        *tasks.TOOLS,
    ),
    resources=resources.RESOURCES,
    templates=resources.TEMPLATES,
    prompts=prompts.PROMPTS,
    skills=skills.CONFORMANCE_SKILLS,
)

SKILLS: Final = Toolset("skills", (), skills=skills.SKILLS)

TOOLSETS: Final[tuple[Toolset, ...]] = (PROBE, STREAMING, FEATURES, DISPATCH, CONFORMANCE, SKILLS)
