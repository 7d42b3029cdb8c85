"""Output for operators: `/metrics`, OpenTelemetry, and the lines on standard error.

    event log -> observer -> requests -> tally    -> /metrics, OTLP metrics      (--metrics, --telemetry)
                                      -> spans    -> OTLP traces                 (--telemetry)
    event log -> follower -> lines    -> printer  -> standard error              (--log-level)

Everything here follows the event log, so the protocol knows nothing of it and never waits for it. `service.following`
is the only way in; a part that is off is neither imported nor run.
"""


class TelemetryError(Exception):
    """The telemetry cannot start; the message is the one line for the user."""
