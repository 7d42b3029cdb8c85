"""Output for operators: `/metrics`, OpenTelemetry, and the lines on standard error.

    event log -> observer -> requests -> tally    -> /metrics, OTLP metrics      (--metrics, --telemetry)
                                      -> spans    -> OTLP traces                 (--telemetry)
                                      -> lines    -> OTLP logs                   (--telemetry)
    event log -> follower -> lines    -> printer  -> standard error              (--log-level)

Everything here reads the event log, so the protocol never calls or awaits it.
"""


class TelemetryError(Exception):
    """The telemetry cannot start; the message is one line."""
