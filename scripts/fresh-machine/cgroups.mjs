/** A control group of a fresh machine's own in every hierarchy, so that whatever its engine makes is below it. */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const top = '/sys/fs/cgroup';

function hierarchies() {
  if (existsSync(join(top, 'cgroup.controllers'))) return [top];
  return readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, point, type]) => (type === 'cgroup' || type === 'cgroup2') && point?.startsWith(`${top}/`))
    .map(([, point]) => point);
}

/** Makes the groups, and returns the files into which a process writes its pid to join them. */
export function makeGroups(name) {
  return hierarchies().map((hierarchy) => {
    const folder = join(hierarchy, name);
    mkdirSync(folder, { recursive: true });
    // A new cpuset of version 1 has no processor and refuses processes until it has.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      if (!existsSync(join(hierarchy, 'cgroup.controllers')) && existsSync(join(folder, file))) {
        writeFileSync(join(folder, file), readFileSync(join(hierarchy, file)));
      }
    }
    return join(folder, 'cgroup.procs');
  });
}

/** The machine's groups that exist. */
export function groupsOf(name) {
  return hierarchies()
    .map((hierarchy) => join(hierarchy, name))
    .filter(existsSync);
}

/** Removes the groups with everything below; returns those that could not be removed. */
export function removeGroups(name) {
  const left = [];
  for (const folder of groupsOf(name)) {
    const below = readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort((a, b) => b.length - a.length);
    for (const group of [...below, folder]) {
      try {
        rmdirSync(group);
      } catch {
        left.push(group);
      }
    }
  }
  return left;
}
