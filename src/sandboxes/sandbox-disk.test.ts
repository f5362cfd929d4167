/** The disk of a sandbox whose engine lost a container, or cannot measure one. */

import { describe, expect, it } from 'vitest';
import { sandboxRecord } from '../../test/support/store-records.ts';
import type { DiskUse } from './ports.ts';
import type { SandboxRecord } from './records.ts';
import { SandboxDisk } from './sandbox-disk.ts';

const gib = 2 ** 30;
const service = { name: 'db', image: 'postgres' };

function diskOf(
  more: Partial<SandboxRecord>,
  measure: (id: string) => Promise<DiskUse> = async () => ({
    amount: gib,
    isComplete: true,
    hasDeleted: true,
  }),
) {
  let record: SandboxRecord = {
    ...sandboxRecord(1),
    state: 'READY',
    containerId: 'box',
    services: [{ name: 'db', required: true, image: 'postgres', state: 'READY', containerId: 'gone' }],
    ...more,
  };
  const notes: string[] = [];
  const reports: string[] = [];
  const disk = new SandboxDisk({
    keeper: {
      get record() {
        return record;
      },
      note: (news) => {
        record = { ...record, ...news };
      },
    },
    engine: { diskHold: async (id) => (id === 'gone' ? undefined : { hasVolumes: false }) },
    meter: {
      wake: () => {},
      measure,
      known: () => undefined,
      sample: async () => undefined,
    },
    tell: (code) => void notes.push(code),
    report: (what) => void reports.push(what),
  });
  return { disk, notes, reports };
}

describe('[N5] the disk of a sandbox', () => {
  it('has a row for a service whose container was removed, and can change its limit', async () => {
    const { spec } = sandboxRecord(1);
    const { disk } = diskOf({ spec: { ...spec, required_services: [service] } });
    expect(await disk.rows()).toMatchObject([
      { name: 'disk', status: 'ok' },
      { name: 'disk of db', status: 'unknown', found: expect.stringContaining('no container') },
    ]);
    await disk.change(40 * gib);
    expect(disk.watched.map(({ limitBytes }) => limitBytes)).toEqual([40 * gib, 40 * gib]);
  });

  it('leaves the limit that a service has of its own', async () => {
    const { spec } = sandboxRecord(1);
    const own = { ...spec, required_services: [{ ...service, limits: { disk: gib } }] };
    const { disk, notes } = diskOf({ spec: own });
    await disk.change(40 * gib);
    expect(disk.watched.map(({ limitBytes }) => limitBytes)).toEqual([40 * gib, gib]);
    expect(notes).toEqual(['disk_limit_services']);
  });

  it.each([
    {
      what: 'cannot be measured',
      measure: async () => await Promise.reject(new Error('du is missing')),
      row: {
        found: 'not enforced: du is missing',
        status: 'failed',
        advice: expect.stringContaining('Only the reserve'),
      },
    },
    {
      what: 'is measured in part',
      measure: async () => ({ amount: gib, isComplete: false, hasDeleted: true }),
      row: {
        found: 'not enforced: the daemon cannot read all of its files',
        status: 'failed',
        advice: expect.stringContaining('Only the reserve'),
      },
    },
    {
      what: 'is measured',
      measure: async () => ({ amount: gib, isComplete: true, hasDeleted: true }),
      row: { found: expect.stringMatching(/^watched: 1\.0 GiB of /), status: 'ok' },
    },
  ])('says of a container that $what whether its limit is enforced', async ({ measure, row }) => {
    const { disk } = diskOf({ services: [] }, measure);
    expect(await disk.rows()).toMatchObject([{ name: 'disk', ...row }]);
  });

  it('lets a create go on when a measurement fails', async () => {
    const { disk, reports } = diskOf({}, async () => await Promise.reject(new Error('late')));
    await disk.requireWithinLimits();
    expect(reports).toHaveLength(2);
  });

  it('is watched while it is paused, and in clean-up by its growth alone', () => {
    const over = { rule: 'reserve', of: 'bytes', limit: 5 * gib, used: 90 * gib } as const;
    expect(diskOf({ state: 'PAUSED' }).disk.watched).toHaveLength(2);
    expect(diskOf({ overDisk: over, cleanUp: 'asked' }).disk.watched).toMatchObject([
      { boxId: 'box', roomBytes: gib / 4 },
    ]);
  });
});
