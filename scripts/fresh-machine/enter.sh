#!/bin/sh
# First process of a fresh machine: runs in new mount, pid, network, ipc, uts and cgroup namespaces, makes the machine's
# own /proc, /sys, /dev and cgroup mounts, changes the root, waits for the network, then runs the command.
#
#   enter.sh ROOT SOURCE COMMAND [ARG...]
#
# Every mount is made here, in a private mount namespace, so all of them vanish with the last process. /dev is a file
# system of its own: nothing inside can reach the device nodes of the machine that runs this.
set -eu
root=$1 source=$2
shift 2

mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"

mount -t tmpfs -o mode=755,size=64k,nr_inodes=200 tmpfs "$root/dev"
for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 fuse:10:229; do
  name=${node%%:*} numbers=${node#*:}
  mknod -m 666 "$root/dev/$name" c "${numbers%:*}" "${numbers#*:}"
done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/net"
mknod -m 666 "$root/dev/net/tun" c 10 200
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${stream%:*}" "$root/dev/${stream#*:}"; done

# The controllers of the machine that runs this, each seen from this machine's own group.
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  # A group with processes cannot hand its controllers to groups below it.
  mkdir "$root/sys/fs/cgroup/init"
  for pid in $(cat "$root/sys/fs/cgroup/cgroup.procs"); do
    echo "$pid" >"$root/sys/fs/cgroup/init/cgroup.procs" 2>/dev/null || true
  done
  sed 's/\([^ ]*\)/+\1/g' "$root/sys/fs/cgroup/cgroup.controllers" >"$root/sys/fs/cgroup/cgroup.subtree_control"
else
  mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
  awk '$3 == "cgroup" { print $2, $4 }' /proc/mounts | while read -r point options; do
    case $point in "$root"/*) continue ;; esac
    controllers=$(echo "$options" | tr , '\n' | grep -vxE 'rw|ro|nosuid|nodev|noexec|relatime|xattr|release_agent=.*|clone_children' | paste -sd,)
    case $controllers in name=*) controllers=none,$controllers ;; esac
    inside=$root/sys/fs/cgroup/${point##*/}
    mkdir -p "$inside"
    mount -t cgroup -o "$controllers" cgroup "$inside"
  done
fi

mkdir -p "$root/mnt/source"
mount --bind "$source" "$root/mnt/source"
mount -o remount,bind,ro "$root/mnt/source"

hostname fresh
cd "$root"
mkdir -p mnt/old
pivot_root . mnt/old
exec chroot . /bin/sh -c '
  set -eu
  umount -l /mnt/old
  mount --make-rshared /
  # The program outside connects the network when it reads this, and closes the pipe when it has.
  echo namespaces-ready >&3
  exec 3>&-
  read -r _ <&4 || true
  exec 4<&-
  exec "$@"
' sh "$@"
