#!/bin/sh
# First process of a machine with a kernel of its own: makes its mounts and network, runs the script that user-mode.mjs put
# into the shared folder, leaves the exit code and the test results there, and switches the machine off.
#
# The script writes to a pipe, as on the other machines. The serial line carries the pipe to the program outside.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
shared=/mnt/shared

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# Processes are below the top, as where systemd runs: engines look for some files in their own group, and the top lacks them.
mkdir /sys/fs/cgroup/session
echo "$$" >/sys/fs/cgroup/session/cgroup.procs
sed 's/\([^ ]*\)/+\1/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /dev/pts /dev/shm "$shared" /mnt/source
mount -t devpts -o mode=620,ptmxmode=0666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${stream%:*}" "/dev/${stream#*:}"; done
mount -t hostfs -o hostfs=/shared hostfs "$shared"
mount -t hostfs -o ro,hostfs=/mnt/source hostfs /mnt/source
mount --make-rshared /
echo fresh >/proc/sys/kernel/hostname
# Kernel 7.2 as a program panics in io_uring, which Node.js and npm try first and do without where it is closed.
echo 2 >/proc/sys/kernel/io_uring_disabled

ip link set lo up
. "$shared/network"

line=/dev/ttyS0
exec 9>"$line"
stty -F "$line" raw
mkfifo /run/output
cat /run/output >&9 &
carrier=$!
(
  exec </dev/null >/run/output 2>&1 9>&-
  . "$shared/environment"
  exec /bin/sh "$shared/script"
)
echo "$?" >"$shared/exit-code"
cp /root/sallyport/.cache/test-results.json "$shared/" 2>/dev/null

# The pipe ends when the last process that could write to it has.
(
  read -r self _ </proc/self/stat
  while sleep 0.2; do
    for folder in /proc/[0-9]*; do
      pid=${folder#/proc/}
      case $pid in 1 | "$carrier" | "$self") ;; *) kill -KILL "$pid" ;; esac
    done
  done
) 2>/dev/null 9>&- &
wait "$carrier"
# Sets nothing new, and waits until the line has sent everything.
stty -F "$line" raw
echo o >/proc/sysrq-trigger
sleep 60
