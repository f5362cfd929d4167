/** A container request as the `docker run` line that would make the same container: for reading, and for trying by hand. */

import { shellLine } from '../../lib/shell-words.ts';
import type { ContainerBody, HostConfigBody, MountBody } from './types.ts';

export function dockerRunLine(name: string, body: ContainerBody): string {
  const [entrypoint, ...rest] = [...(body.Entrypoint ?? []), ...(body.Cmd ?? [])];
  const words = [
    'docker',
    'run',
    ...option('--name', name),
    ...(body.OpenStdin === true ? ['--interactive'] : []),
    ...option('--user', body.User),
    ...option('--workdir', body.WorkingDir),
    ...option('--hostname', body.Hostname),
    ...(body.Env ?? []).flatMap((variable) => ['--env', variable]),
    ...Object.entries(body.Labels ?? {}).flatMap(([label, value]) => ['--label', `${label}=${value}`]),
    ...(body.Healthcheck === undefined ? [] : ['--no-healthcheck']),
    ...Object.values(body.NetworkingConfig?.EndpointsConfig ?? {})
      .flatMap(({ Aliases }) => Aliases)
      .flatMap((alias) => ['--network-alias', alias]),
    ...hostOptions(body.HostConfig ?? {}),
    ...option('--entrypoint', entrypoint),
    body.Image,
    ...rest,
  ];
  return shellLine(words);
}

function hostOptions(host: HostConfigBody): readonly string[] {
  return [
    ...(host.AutoRemove === true ? ['--rm'] : []),
    ...option('--runtime', host.Runtime),
    ...option('--network', host.NetworkMode),
    ...(host.Dns ?? []).flatMap((address) => ['--dns', address]),
    ...(host.DnsSearch ?? []).flatMap((domain) => ['--dns-search', domain]),
    ...(host.DnsOptions ?? []).flatMap((value) => ['--dns-option', value]),
    ...Object.entries(host.Sysctls ?? {}).flatMap(([name, value]) => ['--sysctl', `${name}=${value}`]),
    ...option('--ipc', host.IpcMode),
    ...option('--log-driver', host.LogConfig?.Type),
    ...(host.ReadonlyRootfs === true ? ['--read-only'] : []),
    ...(host.CapDrop ?? []).flatMap((capability) => ['--cap-drop', capability]),
    ...(host.SecurityOpt ?? []).flatMap((value) => ['--security-opt', value]),
    ...option('--memory', host.Memory),
    ...option('--memory-swap', host.MemorySwap),
    ...option('--cpu-period', host.CpuPeriod),
    ...option('--cpu-quota', host.CpuQuota),
    ...option('--pids-limit', host.PidsLimit),
    ...option('--shm-size', host.ShmSize),
    ...option('--storage-opt', host.StorageOpt && `size=${host.StorageOpt.size}`),
    ...(host.Ulimits ?? []).flatMap(({ Name, Soft, Hard }) => ['--ulimit', `${Name}=${Soft}:${Hard}`]),
    ...Object.entries(host.Tmpfs ?? {}).flatMap(([target, options]) => ['--tmpfs', `${target}:${options}`]),
    ...(host.Mounts ?? []).flatMap((mount) => ['--mount', mountFields(mount).map(field).join(',')]),
  ];
}

function mountFields(mount: MountBody): readonly string[] {
  const bind = mount.BindOptions;
  return [
    `type=${mount.Type}`,
    `source=${mount.Source}`,
    `target=${mount.Target}`,
    ...(mount.ReadOnly === true ? ['readonly'] : []),
    ...(mount.VolumeOptions?.NoCopy === true ? ['volume-nocopy'] : []),
    ...(bind === undefined ? [] : [`bind-propagation=${bind.Propagation}`]),
    ...(bind?.NonRecursive === true ? ['bind-nonrecursive'] : []),
  ];
}

/** The value of `--mount` is a line of CSV. */
function field(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function option(name: string, value: string | number | undefined): readonly string[] {
  return value === undefined ? [] : [name, String(value)];
}
