"""The documents say what is so: docs/limits.md is made from the settings, and each limit is tested at its edge."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from probe.endpoints.pages import limits
from probe.settings import Limits, Settings, described

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "limits.md"
LIMITS = [spec.name for spec in described(Limits)]
SETTINGS = [spec.name for spec in described(Settings)]
TIMES = [spec.name for spec in described(Settings) if spec.name.endswith(("_s", "_ms"))]
NO_BOUNDS = {"feed_tick_s", "sse_retry_ms", "ping_interval_s", "task_poll_ms", "audit_flush_s"}
"""Times at which something happens; nobody can be beyond them."""


def test_the_committed_page_is_not_stale() -> None:
    """Else: python -m probe.endpoints.pages.limits > docs/limits.md."""
    assert COMMITTED.read_text(encoding="utf-8") == limits.page()


def test_the_program_prints_it() -> None:
    command = [sys.executable, "-W", "error", "-m", "probe.endpoints.pages.limits"]
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    printed = subprocess.run(command, check=True, capture_output=True, timeout=60, env=env)
    assert printed.stdout == COMMITTED.read_bytes()


def test_it_says_of_each_limit_and_each_time_what_is_beyond_it() -> None:
    assert limits.BEYOND.keys() == {*LIMITS, *TIMES} - NO_BOUNDS


def test_every_setting_that_it_names_exists() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", limits.page()))
    assert named - {"host_busy", "server_full"} <= {*LIMITS, *SETTINGS}


def test_what_has_a_share_is_what_is_asked_for() -> None:
    """Each name that the code checks a share of is in the page, and the other way round."""
    asked: set[str] = set()
    for path in (ROOT / "src" / "probe").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        asked |= set(re.findall(r"(?:shares\.(?:check|take|held)|__init__)\(\s*\"(max_\w+)\"", text))
    assert asked | {"max_calls", "max_listens", "max_connections"} == set(limits.SHARED)


# Where each limit is tested: up to it all is well, beyond it the client gets what docs/limits.md says.
EDGES: dict[str, str] = {
    "max_body_bytes": "legacy/test_bad_input.py::test_a_body_may_be_as_large_as_the_limit_and_not_larger"
    " sockets/test_websocket.py::test_the_limit_of_a_message_counts_bytes"
    " transports/test_pipe_limits.py::test_the_size_of_a_message_is_exact",
    "max_initialize_bytes": "legacy/test_bad_input.py::test_an_initialize_has_a_limit_of_its_own",
    "max_id_length": "legacy/test_bad_input.py::test_each_bad_body_has_its_answer_and_harms_nobody"
    " transports/test_pipe_limits.py::test_any_other_id_comes_back_as_it_is",
    "max_header_bytes": "sockets/test_limits_and_end.py::test_http1_the_limit_of_a_head_is_exact_however_it_is_cut"
    " sockets/test_limits_and_end.py::test_http2_headers_too_large",
    "max_headers": "sockets/test_limits_and_end.py::test_http1_too_many_headers"
    " sockets/test_limits_and_end.py::test_http2_too_many_headers",
    "max_json_depth": "legacy/test_bad_input.py::test_64_levels_are_accepted"
    " legacy/test_bad_input.py::test_each_bad_body_has_its_answer_and_harms_nobody",
    "max_batch": "legacy/test_batches.py::test_a_batch_may_have_50_messages_and_not_more",
    "max_sessions": "legacy/test_sessions.py::test_beyond_the_limit_of_sessions_initialize_is_503_until_one_has_ended",
    "max_in_flight": "legacy/test_sessions.py::"
    "test_beyond_the_requests_in_flight_a_session_gets_429_until_one_is_over"
    " transports/test_pipe_limits.py::test_one_in_flight_too_many_is_refused_and_nothing_else_happens",
    "max_tasks_per_session": "legacy/test_tasks.py::test_the_number_of_tasks_of_a_session_is_limited",
    "max_tasks": "legacy/test_tasks.py::test_the_number_of_all_tasks_is_limited"
    " modern/test_tasks.py::test_one_task_more_than_the_limit_is_refused",
    "max_subscriptions": "legacy/test_sessions.py::"
    "test_beyond_the_limit_of_subscriptions_one_is_refused_until_another_has_ended"
    " modern/test_listen.py::test_so_many_resources_and_tasks_and_no_more_are_honoured",
    "max_calls": "modern/test_limits.py::test_calls_beyond_the_limit_are_refused_and_nothing_else_is",
    "max_listens": "modern/test_listen.py::test_one_subscription_more_than_the_limit_is_refused",
    "max_request_state": "modern/test_limits.py::test_a_state_that_could_not_come_back_is_not_given",
    "max_incoming_bytes": "limits/test_memory.py::test_bodies_on_their_way_are_bounded"
    " limits/test_sockets.py::test_messages_on_their_way_are_bounded_over_all",
    "max_unsent_bytes": "modern/test_limits.py::test_an_answer_that_nobody_reads_holds_its_place"
    " limits/test_shares.py::test_pipes_that_nobody_reads",
    "max_interactions": "limits/test_edges.py::test_pages_of_url_elicitation_are_bounded",
    "max_listen_queue": "modern/test_listen.py::test_a_reader_that_falls_behind_gets_what_is_queued_and_the_end",
    "requests_per_second": "limits/test_doorman.py::test_beyond_the_burst_a_page_is_429_until_it_may_come_again"
    " limits/test_doorman.py::test_messages_are_read_as_slowly_as_the_rate_says",
    "request_burst": "limits/test_doorman.py::test_beyond_the_burst_a_page_is_429_until_it_may_come_again",
    "address_share": "limits/test_shares.py::test_sessions limits/test_shares.py::test_all_may_be_one_s",
    "max_connections": "sockets/test_limits_and_end.py::test_connections_beyond_the_limit_are_closed_at_once"
    " limits/test_open_files.py::test_without_a_place_pages_are_served_and_the_protocols_are_busy",
    "reserved_connections": "limits/test_open_files.py::test_who_has_asked_for_nothing_for_longest_makes_room"
    " limits/test_open_files.py::test_connections_that_make_room_are_bounded_until_they_have_ended",
    "reserved_files": "limits/test_open_files.py::"
    "test_idle_connections_beyond_the_limit_of_descriptors_do_not_keep_anybody_out",
    "max_websockets": "sockets/test_websocket_endpoint.py::test_one_too_many_is_refused_until_another_goes",
    "max_tool_hosts": "hosting/test_handshake.py::test_one_host_more_than_may_be_connected_is_told_to_come_later",
    "max_host_tools": "hosting/test_registration.py::test_more_tools_than_may_be_are_refused_whole",
    "max_host_schema_bytes": "hosting/test_schemas.py::test_the_size_of_a_schema_has_its_limits",
    "max_host_schema_depth": "hosting/test_schemas.py::test_the_size_of_a_schema_has_its_limits",
    "max_host_dispatches": "hosting/test_cancellation.py::test_every_place_is_for_whoever_comes_first",
    "host_queue_bytes": "hosting/test_slow_hosts.py::"
    "test_what_waits_for_a_host_is_bounded_and_then_calls_fail_at_once",
    "max_streams_per_connection": "sockets/test_peers_that_misbehave.py::"
    "test_http2_stream_too_many_is_refused_and_the_others_live",
    "max_standalone_streams": "legacy/test_transport.py::test_a_get_beyond_the_limit_ends_the_oldest_stream_properly",
    "replay_messages": "legacy/test_resume.py::test_messages_that_are_no_longer_kept_are_410_and_the_others_can_be_had"
    " streams/test_limits.py::test_as_many_messages_may_wait_as_create_says",
    "replay_bytes": "legacy/test_resume.py::test_the_bytes_of_a_stream_are_bounded_too"
    " streams/test_limits.py::test_bytes_are_bounded_likewise",
    "replay_bytes_per_session": "limits/test_edges.py::test_finished_streams_of_a_session_are_bounded_in_bytes",
    "max_replay_bytes": "limits/test_memory.py::"
    "test_up_to_the_limit_everything_is_kept_and_one_byte_more_costs_who_holds_most"
    " limits/test_memory.py::test_streams_of_all_sessions_are_bounded_together",
    "replay_streams": "legacy/test_resume.py::test_beyond_the_number_of_streams_the_oldest_is_gone",
    "max_pipe_bytes": "transports/test_pipe_limits.py::test_a_client_that_leaves_too_much_unread_is_given_up"
    " transports/test_pipe_limits.py::test_one_that_leaves_less_unread_is_not",
    "max_draft_streams": "streams/test_limits.py::test_so_many_streams_the_server_may_have",
    "max_draft_streams_per_client": "streams/test_limits.py::test_so_many_streams_a_client_may_have",
    "draft_stream_bytes": "streams/test_limits.py::test_all_streams_together_are_bounded_and_finished_ones_go_first",
    "progress_per_second": "legacy/test_progress.py::test_a_lasting_flood_is_told_at_the_set_rate",
    "progress_burst": "legacy/test_progress.py::test_a_hundred_steps_without_a_pause_are_all_told"
    " legacy/test_progress.py::test_a_flood_at_once_is_coalesced_and_its_last_report_kept",
    "event_log_events": "pages/test_events.py::test_what_was_pushed_out_is_a_gap_and_not_silence",
    "event_log_bytes": "observe/test_log.py::test_the_log_is_bounded_in_bytes_and_keeps_its_newest_event",
    "call_records": "observe/test_records.py::test_the_newest_records_are_kept_and_come_first",
    "record_argument_bytes": "observe/test_records.py::test_arguments_are_kept_whole_or_cut",
    "record_result_bytes": "observe/test_recorded_results.py::test_of_a_large_result_the_beginning_is_kept",
    "max_feed_readers": "endpoints/test_feed.py::test_a_reader_too_many_is_told_so",
    "feed_events_per_second": "endpoints/test_feed.py::test_a_log_that_grows_too_fast_is_skipped_with_a_word",
    "feed_burst": "endpoints/test_feed.py::test_a_log_that_grows_too_fast_is_skipped_with_a_word",
    "audit_rows": "engine/test_audit.py::test_the_oldest_rows_make_room",
    "audit_bytes": "observe/test_audit_db.py::test_the_oldest_make_room_for_bytes"
    " limits/test_edges.py::test_the_file_of_the_audit_is_bounded_in_bytes",
    "api_page_bytes": "pages/test_events.py::test_a_page_is_bounded_in_bytes_but_never_empty",
    "api_scan": "pages/test_events.py::test_a_page_with_filters_looks_at_a_bounded_number_of_entries",
    "api_page": "pages/test_calls.py::test_a_page_has_at_most_api_page_rows_and_api_page_bytes",
    "grace_s": "legacy/test_shutdown.py::test_running_calls_may_finish_within_the_grace_period"
    " legacy/test_shutdown.py::test_calls_that_take_longer_are_cancelled_and_told_why",
    "keep_alive_s": "legacy/test_transport.py::"
    "test_the_interval_of_comments_is_a_setting_and_messages_make_them_needless",
    "idle_connection_s": "sockets/test_limits_and_end.py::test_a_connection_without_a_request_is_closed"
    " limits/test_sockets.py::test_a_head_that_comes_byte_by_byte_ends_with_its_time"
    " limits/test_sockets.py::test_a_tls_handshake_that_is_never_finished_ends"
    " limits/test_sockets.py::test_a_message_that_is_never_complete_ends_its_connection"
    " legacy/test_transport.py::test_a_body_that_does_not_come_to_its_end_gets_408",
    "write_timeout_s": "sockets/test_peers_that_misbehave.py::"
    "test_http1_peer_that_stops_reading_is_aborted_after_the_write_timeout",
    "ws_ping_s": "sockets/test_websocket.py::test_who_is_silent_is_pinged_once_and_then_cut_off",
    "session_idle_s": "legacy/test_sessions.py::test_an_idle_session_ends_and_a_used_one_does_not",
    "session_first_s": "limits/test_memory.py::"
    "test_a_session_in_which_nothing_follows_initialize_is_ended_soon",
    "stream_retention_s": "legacy/test_resume.py::test_a_finished_stream_is_kept_for_300_seconds",
    "stream_min_s": "streams/test_intervals.py::test_a_resume_is_too_early_until_min_after_the_disconnect",
    "stream_max_s": "streams/test_intervals.py::test_nobody_comes_back_so_it_is_abandoned_at_that_very_moment",
    "idle_deadline_s": "legacy/test_deadlines.py::test_the_deadlines_are_settings",
    "ceiling_deadline_s": "legacy/test_deadlines.py::test_the_deadlines_are_settings",
    "toolhost_register_s": "hosting/test_registration.py::test_who_does_not_register_in_time_is_cut_off",
    "toolhost_linger_s": "hosting/test_cancellation.py::"
    "test_a_place_is_given_back_when_the_host_never_says_that_it_has_stopped",
    "client_request_s": "legacy/test_deadlines.py::test_a_question_that_nobody_answers_is_named_by_its_own_limit",
    "client_ping_s": "legacy/test_client_requests.py::test_a_ping_without_answer_is_withdrawn_and_noted",
    "task_ttl_ms": "legacy/test_tasks.py::test_a_finished_task_is_gone_when_its_ttl_has_passed",
    "task_ttl_max_ms": "legacy/test_tasks.py::test_the_actual_ttl_is_told",
    "request_state_ttl_s": "modern/test_rounds.py::test_a_state_expires_and_each_round_begins_its_time_anew",
}


def test_each_limit_and_each_time_has_its_tests() -> None:
    assert EDGES.keys() == limits.BEYOND.keys()


@pytest.mark.parametrize("name", EDGES)
def test_they_are_there(name: str) -> None:
    for place in EDGES[name].split():
        file, _, test = place.partition("::")
        assert re.search(rf"^(async )?def {test}\(", (ROOT / "tests" / file).read_text("utf-8"), re.MULTILINE), place
