# What the container `database` of a PostgresCluster is: a server, and psql for its own user.
FROM debian:bookworm-slim
RUN useradd --uid 1026 --user-group --home-dir /var/lib/postgresql postgres \
    && mkdir /etc/postgresql-common \
    && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf \
    && apt-get update \
    && apt-get install --yes --no-install-recommends postgresql-15 \
    && rm -rf /var/cache/apt/archives /var/lib/apt/lists /usr/share/doc /usr/share/locale
ENV PATH=/usr/lib/postgresql/15/bin:$PATH
USER 1026:1026
