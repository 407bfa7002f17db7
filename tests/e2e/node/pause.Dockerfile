# What holds the namespaces of a pod open.
FROM debian:bookworm-slim
ENTRYPOINT ["sleep", "infinity"]
