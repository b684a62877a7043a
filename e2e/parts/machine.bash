# A machine inside this one, for `e2e/condor` and `e2e/slurm`: a Debian root file system, built once and kept, and any
# number of running copies of it, each in namespaces of its own. It knows nothing of HTCondor or Slurm.
#
# Who sources this has set
#   kind            a word for messages and file names
#   suite           Debian's suite
#   packages        what is installed, an array
#   home            the directory of this copy: root/ share/ pid log
#   host_name       what it calls itself (KIND.test)
# and has defined
#   configure ROOT  before every start of a copy; it leaves an executable /usr/local/sbin/first, which becomes process 1
#   answers         whether the running copy is ready for use
#   where_logs      where to look when it never is
set -euo pipefail

cache=${TULPAR_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tulpar-e2e}
user=sci

say() { printf '%s: %s\n' "$kind" "$*" >&2; }
die() { say "$*"; exit 1; }
cannot() { say "$*"; exit 3; }

# A start is remembered as process id and start time, because ids are used again.
born() { local stat; stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1; set -- ${stat##*) }; [ "$1" != Z ] && echo "${20}"; }
first() { # prints the id, as seen from outside, of the running copy's process 1
  local id since now
  read -r id since 2>/dev/null <"$home/pid" || return 1
  now=$(born "$id") && [ "$now" = "$since" ] && echo "$id"
}

# --- the root file system, built once ------------------------------------------------------------------------------

mirror() {
  [ -z "${TULPAR_E2E_MIRROR:-}" ] || { echo "$TULPAR_E2E_MIRROR"; return; }
  local found
  # shellcheck disable=SC2016 # the dollars are apt's
  found=$(apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && $2 !~ /-/ { print $3; exit }')
  [ -n "$found" ] || cannot "apt knows no mirror of Debian: run \`apt-get update\`, or name one in TULPAR_E2E_MIRROR"
  echo "$found"
}

# A /dev with what programs expect and nothing of this machine's hardware.
devices() {
  local node name major minor
  mount -t tmpfs -o mode=755,nosuid tmpfs "$1/dev"
  mkdir "$1/dev/pts" "$1/dev/shm" "$1/dev/net"
  for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 fuse:10:229 net/tun:10:200 ${extra_devices:-}; do
    IFS=: read -r name major minor <<<"$node"
    mknod -m 666 "$1/dev/$name" c "$major" "$minor"
  done
  mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$1/dev/pts"
  mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$1/dev/shm"
  ln -s pts/ptmx "$1/dev/ptmx"
  ln -s /proc/self/fd "$1/dev/fd"
  ln -s /proc/self/fd/0 "$1/dev/stdin"
  ln -s /proc/self/fd/1 "$1/dev/stdout"
  ln -s /proc/self/fd/2 "$1/dev/stderr"
}

install_packages() { # in a mount namespace that ends with it, so that no mount is left
  local root=$1
  shift
  mount -t proc proc "$root/proc"
  devices "$root"
  export DEBIAN_FRONTEND=noninteractive LC_ALL=C
  chroot "$root" apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install "$@"
  chroot "$root" apt-get clean
  rm -rf "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
}

build() { # prints where the root file system is kept
  local kept building log from
  # Another list of packages is another root file system.
  kept=$cache/$kind-$suite-$(printf '%s ' "${packages[@]}" | cksum | cut -d' ' -f1)
  mkdir -p "$cache"
  exec 9>"$cache/$kind-$suite.lock"
  # Whoever builds inherits the lock, so that it is held while anything of a killed build is still at work.
  flock 9
  if [ ! -d "$kept" ]; then
    # Only a rename makes the name above, so what is called otherwise was left by a build that died.
    rm -rf --one-file-system "$cache/$kind-$suite"-*.building
    building=$kept.building log=$cache/$kind-$suite.build.log
    from=$(mirror)
    say "building Debian $suite with ${packages[*]} (about a minute, once)"
    debootstrap --variant=minbase "$suite" "$building" "$from" >"$log" 2>&1 ||
      { tail -5 "$log" >&2; die "debootstrap failed; its words are in $log"; }
    printf '#!/bin/sh\nexit 101\n' >"$building/usr/sbin/policy-rc.d" # no package may start a service
    chmod 755 "$building/usr/sbin/policy-rc.d"
    printf 'force-unsafe-io\n' >"$building/etc/dpkg/dpkg.cfg.d/hurry"
    printf 'path-exclude=/usr/share/%s/*\n' doc man locale >>"$building/etc/dpkg/dpkg.cfg.d/hurry"
    unshare --mount --propagation private bash -c \
      "set -e; $(declare -f devices install_packages); install_packages \"\$@\"" _ "$building" "${packages[@]}" \
      >>"$log" 2>&1 || { tail -5 "$log" >&2; die "apt-get failed; its words are in $log"; }
    chroot "$building" useradd --create-home --uid 1000 --shell /bin/bash "$user"
    mv "$building" "$kept"
  fi
  # Those of other lists go when nobody has used them for a month.
  touch "$kept"
  find "$cache" -maxdepth 1 -name "$kind-$suite-*" -type d -mtime +30 -exec rm -rf --one-file-system {} +
  flock -u 9
  exec 9>&-
  echo "$kept"
}

# --- a copy that runs ----------------------------------------------------------------------------------------------

# Runs as process 1 of the new namespaces: makes ROOT the only thing there is. pivot_root instead of chroot, because
# who is chrooted may not make user namespaces, and containers inside jobs need them.
enter_root() {
  local root=$1 name=$2 share
  shift 2
  mount --bind "$root" "$root"
  for share in "$@"; do mount --bind "$share" "$root$share"; done
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || mount --bind /sys "$root/sys"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  devices "$root"
  hostname "$name"
  mkdir -p "$root/.outside"
  cd "$root"
  pivot_root . .outside
  umount -l /.outside
  rmdir /.outside
  ip link set lo up
  sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2>/dev/null || true
  exec /usr/local/sbin/first
}

# Outside: starts it, and ends it when the process OWNER ends (0: never).
supervise() {
  local owner=$1 child
  shift
  unshare --mount --propagation private --pid --uts --ipc --net --fork --kill-child bash -c \
    "set -e; $(declare -f devices enter_root); extra_devices='${extra_devices:-}'; enter_root \"\$@\"" first "$@" &
  child=$!
  if [ "$owner" != 0 ]; then
    tail --pid="$owner" -f /dev/null &
    wait -n || true
    kill -KILL "$child" 2>/dev/null || true
    kill "$!" 2>/dev/null || true
  fi
  wait "$child" || true
}

start() {
  local share part path inside outside id=
  for share in "${shares[@]}"; do
    mkdir -p "$share" "$home/root$share"
    path=$home/root
    # Folders above a shared one may be closed to others, as root's home is; here they lead only to what is shared.
    IFS=/ read -ra part <<<"${share#/}"
    for inside in "${part[@]}"; do path=$path/$inside; chmod a+rx "$path"; done
  done
  chmod 1777 "$home/share"
  setsid bash -c "$(declare -f devices enter_root supervise); extra_devices='${extra_devices:-}'; supervise \"\$@\"" \
    "$kind" "${TULPAR_E2E_OWNER:-0}" "$home/root" "${host_name:-$kind.test}" "${shares[@]}" </dev/null >"$home/log" 2>&1 &
  outside=$!
  for _ in $(seq 100); do # supervise → unshare → process 1
    inside=$(pgrep -o -x unshare -P "$outside" 2>/dev/null) && id=$(pgrep -o -P "$inside" 2>/dev/null) && break
    kill -0 "$outside" 2>/dev/null || break
    sleep 0.05
  done
  [ -n "$id" ] || { tail -5 "$home/log" >&2; die "it did not start; its words are in $home/log"; }
  echo "$id $(born "$id")" >"$home/pid.new" && mv "$home/pid.new" "$home/pid"
}

inside() { # inside NAME COMMAND…, in the same folder when there is one
  local who=$1 id folder=/ home_inside=/root identity=()
  shift
  id=$(first) || die "it is not running; start it with \`e2e/$kind up\`"
  if [ "$who" != root ]; then
    home_inside=/home/$who folder=/home/$who
    identity=(/usr/bin/setpriv --reuid "$who" --regid "$who" --init-groups)
  fi
  [ -d "/proc/$id/root$PWD" ] && folder=$PWD
  # shellcheck disable=SC2016 # the inner shell expands them
  exec nsenter -t "$id" -m -p -u -i -n -r "${identity[@]}" /usr/bin/env -i \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$home_inside" USER="$who" LOGNAME="$who" \
    TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
}

up() {
  local kept id
  [ "$(id -u)" = 0 ] || cannot "a machine of its own needs root: run it as root, or do without these tests"
  command -v debootstrap >/dev/null || cannot "debootstrap is missing: apt-get install debootstrap"
  command -v nsenter >/dev/null && command -v unshare >/dev/null || cannot "nsenter is missing: apt-get install util-linux"
  # Root in a container may lack the right to either.
  unshare --mount --pid --fork --uts --ipc --net sh -c 'mount -t tmpfs tmpfs /tmp && mknod /tmp/null c 1 3' 2>/dev/null ||
    cannot "this machine lets nobody make namespaces and device files: run it outside of a container"
  mkdir -p "$home"
  home=$(cd "$home" && pwd -P)
  exec 8>"$home/lock"
  flock 8
  if id=$(first); then
    say "already running, process $id, in $home"
    return
  fi
  kept=$(build)
  if [ ! -d "$home/root" ] || [ "$(cat "$home/made-of" 2>/dev/null)" != "$kept" ]; then
    rm -rf --one-file-system "$home/root" "$home/root.new"
    cp -a --reflink=auto "$kept" "$home/root.new"
    mv "$home/root.new" "$home/root"
    echo "$kept" >"$home/made-of"
  fi
  read -ra shares <<<"$home/share ${TULPAR_E2E_SHARE:-}"
  configure "$home/root"
  start 8>&-
  for _ in $(seq 240); do
    answers && { say "up, process $(first), in $home"; return; }
    first >/dev/null || { tail -5 "$home/log" >&2; die "it ended; its words are in $home/log"; }
    sleep 0.25
  done
  die "it does not answer after a minute; its logs are in $home/root$(where_logs)"
}

down() {
  local id
  id=$(first) || { rm -f "$home/pid"; return 0; }
  kill -TERM "$id" 2>/dev/null || true
  for _ in $(seq 100); do first >/dev/null || break; sleep 0.1; done
  # Process 1 of a process namespace takes every other process along.
  if first >/dev/null; then kill -KILL "$id" 2>/dev/null || true; fi
  while first >/dev/null; do sleep 0.05; done
  rm -f "$home/pid"
  say "down"
}

destroy() {
  [ -d "$home" ] || return 0
  [ -e "$home/lock" ] || die "$home was not made by e2e/$kind: nothing is removed"
  down
  rm -rf --one-file-system "$home"
}

main() {
  case "${1:-}" in
    up) up ;;
    down) down ;;
    destroy) destroy ;;
    status)
      if first >/dev/null; then echo "running, process $(first), in $home"; else echo "stopped"; exit 1; fi ;;
    exec)
      shift
      local who=$user
      if [ "${1:-}" = -r ]; then who=root; shift; fi
      [ $# -gt 0 ] || { usage >&2; exit 2; }
      inside "$who" "$@" ;;
    *) usage >&2; exit 2 ;;
  esac
}
