/** Programs that change the machine itself, and those that stop it or what runs on it. */

import type { Call, Judge } from '../call.ts';

const changes: Judge = (call) => call.report('system_write', `${call.program} changes the machine`);
const destroys: Judge = (call) => call.report('destroys', `${call.program} loses data or stops what runs`);

/** Shows with some options, changes with all others. */
const showsWith =
  (shows: (call: Call) => boolean, otherwise: Judge): Judge =>
  (call) => {
    if (!shows(call)) otherwise(call);
  };

const kill: Judge = (call) => {
  if (call.has('-l', '-L', '--list') || call.hasWord('-0')) return;
  call.report('destroys', `${call.program} ends what runs`);
};

const systemctl: Judge = (call) => {
  const sub = call.first;
  if (/^(status|show|list-.*|is-.*|cat|get-default|help|)$/.test(sub)) return;
  if (/^(poweroff|reboot|halt|kexec|suspend|hibernate|emergency|rescue|isolate|stop|kill)$/.test(sub))
    destroys(call);
  else changes(call);
};

const names = (text: string, judge: Judge): Record<string, Judge> =>
  Object.fromEntries(text.split(' ').map((name) => [name, judge]));

export const system: Readonly<Record<string, Judge>> = {
  ...names('kill killall pkill xkill skill', kill),
  ...names('shutdown reboot halt poweroff telinit', destroys),
  init: showsWith((call) => call.args.length === 0, destroys),
  systemctl,
  service: showsWith(({ operands }) => operands[1]?.text === 'status' || operands.length === 0, changes),
  journalctl: showsWith(
    (call) => !call.options.some(({ text }) => /^--(vacuum|rotate|flush|sync)/.test(text)),
    destroys,
  ),
  dmesg: showsWith((call) => !call.has('-C', '-c', '--clear'), changes),
  ...names(
    'fdisk sfdisk gdisk cfdisk parted',
    showsWith((call) => call.has('-l', '--list') || call.args.length === 0, destroys),
  ),
  ...names(
    'mkfs mkswap wipefs blkdiscard cryptsetup badblocks hdparm lvremove vgremove pvremove lvreduce mdadm zpool zfs tune2fs resize2fs debugfs sgdisk nvme flashrom fstrim partprobe mke2fs newfs diskutil',
    destroys,
  ),
  fsck: changes,
  blkid: () => {},
  mount: showsWith((call) => call.args.length === 0 || call.has('-l'), changes),
  ...names(
    'umount swapon swapoff losetup modprobe insmod rmmod depmod iptables ip6tables nft ufw firewall-cmd tc brctl useradd adduser usermod groupadd groupmod addgroup gpasswd passwd chpasswd chsh chfn visudo vipw at batch atd update-grub grub-install update-initramfs dracut hostnamectl localectl hwclock setcap setenforce setsebool semanage chattr update-alternatives update-ca-certificates dpkg-reconfigure debconf alternatives locale-gen sysctl-w mknod pivot_root kexec quotaon edquota renice launchctl defaults networksetup scutil spctl csrutil nvram systemsetup pmset dscl security bless auditctl aa-disable apparmor_parser bpftool efibootmgr usbguard wpa_cli nmcli netplan machinectl',
    changes,
  ),
  ...names('userdel deluser groupdel delgroup', destroys),
  crontab: (call) => {
    if (call.has('-l')) return;
    if (call.has('-r')) destroys(call);
    else changes(call);
  },
  sysctl: showsWith(
    (call) => !call.has('-w', '-p', '--system') && !call.args.some(({ text }) => text.includes('=')),
    changes,
  ),
  loginctl: showsWith(({ first }) => /^(|list-(sessions|users|seats))$/.test(first), changes),
  timedatectl: showsWith(({ first }) => /^(|status|show|list-timezones)$/.test(first), changes),
  ldconfig: showsWith(({ args }) => args.length === 1 && args[0]?.text === '-p', changes),
  logrotate: changes,
  // With a format, tmux runs what stands in it.
  tmux: showsWith(
    ({ args }) =>
      args.length === 1 && /^(ls|list-(sessions|windows|panes|clients))$/.test(args[0]?.text ?? ''),
    (call) => call.report('runs_code', 'tmux runs commands in another terminal'),
  ),
  screen: showsWith(
    ({ args }) => args.length === 1 && /^-(ls|list)$/.test(args[0]?.text ?? ''),
    (call) => call.report('runs_code', 'screen runs commands in another terminal'),
  ),
  logger: changes,
  wall: changes,
  open: (call) => call.report('runs_code', 'open starts a program'),
  'xdg-open': (call) => call.report('runs_code', 'xdg-open starts a program'),
  sally: (call) => call.report('system_write', 'sally changes sandboxes'),
  sallyport: (call) => call.report('system_write', 'sallyport changes sandboxes'),
};
