# The image of the server. Each stage calls a script in container/, which needs no container engine: tests/infra runs
# this file's COPY and RUN in plain folders and starts what comes out.
#
# One base for all stages. Its Python is the one on which .github/workflows/check.yml runs the whole check: a test holds
# the two together, and docs/internals/dependencies.md says why it is this one. The tag names Python's patch release and Debian's release; Debian's fixes come with a rebuild.
# Whoever wants the very same bytes puts the digest that the registry shows behind it (tag@sha256:…), which Dependabot
# then keeps current; the repository names none, since none was seen by the tests.
ARG PYTHON=python:3.14.3-slim-trixie


# hadolint ignore=DL3006
FROM ${PYTHON} AS dashboard
WORKDIR /build
COPY container/build-dashboard.sh container/
COPY requirements/node.txt requirements/
COPY dashboard dashboard/
RUN ["sh", "container/build-dashboard.sh", "/out/site", "/out/sbom"]


# hadolint ignore=DL3006
FROM ${PYTHON} AS wheel
ARG SOURCE_DATE_EPOCH
WORKDIR /build
COPY container/build-wheel.sh container/
COPY requirements/build.txt requirements/
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src/
COPY --from=dashboard /out/site src/probe/web/site/
RUN ["sh", "container/build-wheel.sh", "/out/dist"]


# hadolint ignore=DL3006
FROM ${PYTHON} AS installed
WORKDIR /build
COPY container/install.sh container/sbom.sh container/settle_sbom.py container/
COPY requirements/run.txt requirements/sbom.txt requirements/
COPY --from=wheel /out/dist dist/
RUN ["sh", "container/install.sh", "/opt/mcp-probe", "dist"]
COPY --from=dashboard /out/sbom /opt/mcp-probe/share/sbom/
RUN ["sh", "container/sbom.sh", "/opt/mcp-probe", "/opt/mcp-probe/share/sbom"]
COPY container/healthcheck.py /opt/mcp-probe/share/


# hadolint ignore=DL3006
FROM ${PYTHON}
LABEL org.opencontainers.image.title="MCP Probe" \
      org.opencontainers.image.description="A diagnostic Model Context Protocol server" \
      org.opencontainers.image.licenses="MIT"
# nothing is installed later
RUN ["python3", "-m", "pip", "uninstall", "--yes", "--quiet", "--root-user-action=ignore", "pip"]
COPY --from=installed /opt/mcp-probe /opt/mcp-probe/
# a volume that is mounted here, for MCP_PROBE_AUDIT_DB, gets this owner
RUN ["install", "-d", "-o", "10001", "-g", "10001", "/data"]
# The container is the border here: what reaches the server is what was published or what the ingress lets through.
ENV MCP_PROBE_HOST=0.0.0.0 \
    MCP_PROBE_PORT=8000 \
    PYTHONDONTWRITEBYTECODE=1
# a number, as orchestrators that insist on "not root" cannot look up names
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["/opt/mcp-probe/bin/python", "-I", "-S", "/opt/mcp-probe/share/healthcheck.py"]
STOPSIGNAL SIGTERM
# as arrays: the server itself is process 1 and gets the signals
ENTRYPOINT ["/opt/mcp-probe/bin/mcp-probe"]
CMD ["serve"]
