import { expect, it } from 'vitest';
import { PublishedPorts } from './published-ports.ts';
import type { SandboxRecord } from './records.ts';

it('[N5] a sandbox publishes at most a hundred ports, whoever asks and however many at once', async () => {
  const record = { id: 'sb-1', name: 'box', state: 'READY', ports: [] } as unknown as SandboxRecord;
  const kept = { ...record };
  const ports = new PublishedPorts({
    record: () => kept,
    note: (news) => void Object.assign(kept, news),
    connect: async () => {
      throw new Error('nobody connects here');
    },
    hold: () => () => {},
    tell: () => {},
    requirePublishable: () => {},
    report: () => {},
  });
  try {
    const tried = await Promise.allSettled(
      Array.from({ length: 120 }, (_, at) => ports.publish({ box: at + 1 })),
    );
    const refused = tried.flatMap((one) => (one.status === 'rejected' ? [one.reason as object] : []));
    expect(refused).toHaveLength(20);
    for (const error of refused) expect(error).toMatchObject({ code: 'refused_by_policy' });
    expect(ports.views.filter(({ open }) => open)).toHaveLength(100);
    ports.unpublish(ports.views[0]?.host ?? 0);
    expect(await ports.publish({ box: 5000 })).toMatchObject({ box: 5000, open: true });
  } finally {
    ports.closeAll();
  }
});
