# What a torch on a GPU needs and does not bring: as cpu.Dockerfile, on NVIDIA's image with the CUDA compiler and headers.
# torch brings its own CUDA libraries; the driver's come from the host when a GPU is given to the container.
ARG BASE=nvidia/cuda:12.6.3-devel-ubuntu22.04@sha256:d49bb8a4ff97fb5fe477947a3f02aa8c0a53eae77e11f00ec28618a0bcaa2ad1
FROM ${BASE}
RUN set -e; \
    if ! { command -v python3 && command -v g++ && test -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"; }; then \
        export DEBIAN_FRONTEND=noninteractive; \
        apt-get update -q; \
        apt-get install -q -y --no-install-recommends ca-certificates g++ python3 python3-dev; \
        rm -rf /var/lib/apt/lists/*; \
    fi
COPY uv /usr/local/bin/uv
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
