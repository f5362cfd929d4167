/**
 * The CPU limit of a container, as a share of a period. `NanoCpus` sets the same share, but an engine refuses more CPUs
 * there than its machine has, and the standard profile allows two on a machine with one.
 */

const periodUs = 100_000;

export function cpuQuota(cpus: number): { readonly CpuPeriod: number; readonly CpuQuota: number } {
  return { CpuPeriod: periodUs, CpuQuota: Math.floor(cpus * periodUs) };
}
