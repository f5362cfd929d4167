import { describe, expect, it } from 'vitest';
import { hardenedBox } from '../../policy/hardening.ts';
import { boxBody } from './box-body.ts';
import { dockerRunLine } from './docker-run-line.ts';

const box = hardenedBox({
  name: 'box',
  image: 'some-image:1',
  porterVolume: 'porter-volume',
  labels: { a: "it's" },
  endsWithHost: true,
  profile: 'strict',
  runtime: 'runsc',
});

describe('dockerRunLine', () => {
  it('[O2] says everything that the request says, quoted for a shell', () => {
    expect(dockerRunLine('box', boxBody(box))).toBe(
      [
        'docker run --name box --interactive --user 65534:65534 --workdir /tmp --hostname sallyport',
        `--label 'a=it'\\''s' --label dev.sallyport.sandbox=ephemeral`,
        '--no-healthcheck --rm --runtime runsc --network none --dns 127.0.0.1 --dns-search . --dns-option timeout:1 --dns-option attempts:1 --dns-option ndots:0 --ipc private --log-driver none --read-only --cap-drop ALL',
        '--security-opt no-new-privileges --memory 268435456 --memory-swap 268435456 --cpu-period 100000 --cpu-quota 50000',
        '--pids-limit 100 --shm-size 33554432 --ulimit core=0:0 --tmpfs /tmp:rw,nosuid,nodev,noexec,size=67108864,mode=1777',
        '--mount type=volume,source=porter-volume,target=/.sallyport,readonly,volume-nocopy',
        '--entrypoint /.sallyport/porter some-image:1 --nofile=65536 --exit-with-host',
      ].join(' '),
    );
  });

  it('[O2] writes binds as a line of CSV', () => {
    const mounts = [
      { source: '/home/me/a, "b"', target: '/workspace', writable: true },
      { source: '/data', target: '/data', writable: false },
    ];
    const line = dockerRunLine('box', boxBody({ ...box, mounts }));
    expect(line).toContain(
      `--mount 'type=bind,"source=/home/me/a, ""b""",target=/workspace,bind-propagation=rprivate'`,
    );
    expect(line).toContain(
      '--mount type=bind,source=/data,target=/data,readonly,bind-propagation=rprivate,bind-nonrecursive',
    );
  });
});
