# What a torch on the CPU needs and does not bring: Python with its headers, a C++ compiler for inductor, and uv.
# torch itself is what varies from run to run, so it isn't here: it comes as an environment in a volume.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN set -e; \
    if ! { command -v python3 && command -v g++ && test -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"; }; then \
        export DEBIAN_FRONTEND=noninteractive; \
        apt-get update -q; \
        apt-get install -q -y --no-install-recommends ca-certificates g++ python3 python3-dev; \
        rm -rf /var/lib/apt/lists/*; \
    fi
COPY uv /usr/local/bin/uv
