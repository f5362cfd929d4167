import { describe, expect, it } from 'vitest';
import { classOf, parseAddress } from './address.ts';
import { parseHost } from './host.ts';
import { contradictions, judge, judgeAddress, parsePolicy, portsFor, type WrittenPolicy } from './policy.ts';
import { egressPresets } from './presets.ts';

const destination = (host: string, port = 443) => {
  const read = parseHost(host.includes(':') ? `[${host}]` : host);
  if ('problem' in read) throw new Error(read.problem);
  return { ...read, port };
};

function allows(policy: WrittenPolicy, host: string, port?: number): boolean {
  return judge(parsePolicy(policy), { destination: destination(host, port), scheme: 'https' }).allowed;
}

function addressVerdict(policy: WrittenPolicy, text: string, port = 443): string {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(text);
  return judgeAddress(parsePolicy(policy), { host: 'x.com', port }, address)?.code ?? 'allowed';
}

describe('rules about hosts', () => {
  it.each([
    ['x.com', 'x.com', true],
    ['X.com', 'x.com', true],
    ['x.com', 'X.COM.', true],
    ['x.com', 'a.x.com', false],
    ['x.com', 'evilx.com', false],
    ['x.com', 'x.com.evil.com', false],
    ['*.x.com', 'a.x.com', true],
    ['*.x.com', 'a.b.x.com', false],
    ['*.x.com', 'x.com', false],
    ['*.x.com', 'evilx.com', false],
    ['**.x.com', 'a.x.com', true],
    ['**.x.com', 'a.b.c.x.com', true],
    ['**.x.com', 'x.com', false],
    ['**.x.com', 'evilx.com', false],
    ['**.x.com', 'a.x.com.evil.com', false],
    ['93.184.216.34', '93.184.216.34', true],
    ['93.184.216.0/24', '93.184.216.7', true],
    ['93.184.216.0/24', '93.184.217.7', false],
    ['*.x.com', '93.184.216.34', false],
  ])('[A7] the rule %s and the host %s: %s', (rule, host, allowed) => {
    expect(allows({ allow: [rule] }, host)).toBe(allowed);
  });

  it('[A7] an empty list, and none, allow nothing', () => {
    expect(allows({ allow: [] }, 'x.com')).toBe(false);
    expect(allows({}, 'x.com')).toBe(false);
    expect(allows({ allow: ['x.com'] }, 'x.com')).toBe(true);
  });

  it('[A7] a deny beats every allow, in every mode, and the same host in both is told of', () => {
    for (const mode of ['deny', 'learn', 'dangerously-allow-all'] as const) {
      expect(allows({ mode, allow: ['**.x.com', 'a.x.com'], deny: ['a.x.com'] }, 'a.x.com')).toBe(false);
      expect(allows({ mode, allow: ['**.x.com', 'a.x.com'], deny: ['a.x.com'] }, 'b.x.com')).toBe(true);
    }
    expect(contradictions(parsePolicy({ allow: ['x.com'], deny: ['x.com'] }))).toEqual(['x.com']);
  });

  it('[A7] ports are 443 and 80 unless a rule says others; a deny without ports is for all of them', () => {
    expect([80, 443, 22].map((port) => allows({ allow: ['x.com'] }, 'x.com', port))).toEqual([
      true,
      true,
      false,
    ]);
    expect([443, 8443].map((port) => allows({ allow: ['x.com:8443'] }, 'x.com', port))).toEqual([
      false,
      true,
    ]);
    expect(allows({ allow: ['x.com:*'] }, 'x.com', 65535)).toBe(true);
    expect(allows({ allow: ['x.com:*'], deny: ['x.com'] }, 'x.com', 65535)).toBe(false);
    expect(allows({ allow: ['x.com:*'], deny: ['x.com:25'] }, 'x.com', 26)).toBe(true);
  });

  it('[A7] bytes of any kind pass only where a rule says tcp', () => {
    const policy = parsePolicy({ allow: ['x.com', 'db.x.com:5432/tcp'] });
    const tcp = (host: string, port: number) =>
      judge(policy, { destination: destination(host, port), scheme: 'tcp' });
    expect(tcp('db.x.com', 5432).allowed).toBe(true);
    expect(tcp('x.com', 443)).toMatchObject({ allowed: false, code: 'tcp_not_allowed' });
    expect(tcp('db.x.com', 5433)).toMatchObject({ allowed: false, code: 'port_not_allowed' });
  });

  it.each([
    '*',
    '**',
    '*.com',
    '**.com',
    '*.co.uk',
    '**.github.io',
    '*.amazonaws.com',
    'a*.x.com',
    'a.*.com',
    '*x.com',
    '***.x.com',
    '*.',
    '*.1.2.3.4',
    'https://x.com/',
    'https://x.com',
    'x.com/path',
    'x.com:99999',
    'x.com:0',
    'x.com:0443',
    'x.com:',
    ':443',
    '',
    'a@x.com',
    'x.com/tcp',
    '0.0.0.0/0',
    '10.0.0.0/7',
    '::/0',
    '10.0.0.1/8',
    '10.0.0.0/33',
    '127.1',
    '0x7f.0.0.1',
    '2130706433',
    'ｘ.com',
  ])('[A7] refuses the rule %j and says why', (rule) => {
    expect(() => parsePolicy({ allow: [rule] })).toThrow(/egress\.allow\.0/);
    expect(() => parsePolicy({ allow: ['x.com'] })).not.toThrow();
  });

  it('[A7] to deny much is no mistake', () => {
    expect(allows({ allow: ['x.com'], deny: ['*.com'] }, 'x.com')).toBe(false);
    expect(allows({ allow: ['a.x.com'], deny: ['*.com'] }, 'a.x.com')).toBe(true);
    expect(addressVerdict({ deny: ['0.0.0.0/0'] }, '93.184.216.34')).toBe('denied_by_rule');
  });

  it('[A7] every preset can be read, and allows what it names', () => {
    for (const [name, { allow }] of Object.entries(egressPresets)) {
      const policy = { presets: [name as keyof typeof egressPresets] };
      for (const line of allow.filter((text) => !text.includes('/')))
        expect(allows(policy, line), line).toBe(true);
      expect(allows(policy, 'evil.example')).toBe(false);
    }
  });
});

describe('rules about requests', () => {
  const policy: WrittenPolicy = {
    allow: [{ host: 'api.x.com', methods: ['GET'], paths: ['/repos/**', '/user'] }],
  };
  const request = (method: string, path: string, written = policy) =>
    judge(parsePolicy(written), { destination: destination('api.x.com'), scheme: 'https', method, path });

  it.each([
    ['GET', '/repos/a', true],
    ['GET', '/repos/a/b/c?x=1', true],
    ['GET', '/user', true],
    ['GET', '/user?tab=1', true],
    ['GET', '/users', false],
    ['POST', '/repos/a', false],
    ['get', '/repos/a', false],
    ['GET', '/repos/../admin', false],
    ['GET', '/repos/%2e%2e/admin', false],
    ['GET', '/repos/..%2fadmin', false],
    ['GET', '/repos/..;/admin', false],
    ['GET', '//repos/a', false],
    ['GET', '/repos//a', false],
    ['GET', '/repos/./a', false],
    ['GET', '/repos/%61', false],
    ['GET', '/repos/%00', false],
    ['GET', '/repos/a\\..\\admin', false],
    ['GET', '/repos/%zz', false],
    ['GET', '/repos/a%20b', true],
  ])('[A7] %s %s: %s', (method, path, allowed) => {
    expect(request(method, path).allowed).toBe(allowed);
  });

  it('[A7] a connection whose requests are to be judged has to be looked into', () => {
    const tunnel = { destination: destination('api.x.com'), scheme: 'https' } as const;
    expect(judge(parsePolicy(policy), tunnel)).toMatchObject({ allowed: true, inspect: true });
    expect(judge(parsePolicy({ allow: ['api.x.com'] }), tunnel)).toMatchObject({ inspect: false });
    const denying = { allow: ['api.x.com'], deny: [{ host: 'api.x.com', paths: ['/admin/**'] }] };
    expect(judge(parsePolicy(denying), tunnel)).toMatchObject({ allowed: true, inspect: true });
    expect(judge(parsePolicy(denying), { ...tunnel, scheme: 'tcp' }).allowed).toBe(false);
    expect(request('GET', '/admin/x', denying).allowed).toBe(false);
    expect(request('GET', '/%61dmin/x', denying).allowed).toBe(false);
    expect(request('GET', '/public', denying).allowed).toBe(true);
  });
});

describe('addresses', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.0.1', 'loopback'],
    ['::1', 'loopback'],
    ['0.0.0.0', 'reserved'],
    ['::', 'reserved'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.65.2', 'private'],
    ['fd12::1', 'private'],
    ['fec0::1', 'private'],
    ['100.64.0.1', 'shared'],
    ['169.254.1.1', 'link_local'],
    ['fe80::1', 'link_local'],
    ['169.254.169.254', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['fd00:ec2::254', 'metadata'],
    ['224.0.0.251', 'multicast'],
    ['ff02::fb', 'multicast'],
    ['192.0.2.1', 'documentation'],
    ['198.51.100.1', 'documentation'],
    ['203.0.113.1', 'documentation'],
    ['2001:db8::1', 'documentation'],
    ['198.18.0.1', 'reserved'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'reserved'],
    ['::ffff:127.0.0.1', 'mapped'],
    ['::ffff:8.8.8.8', 'mapped'],
    ['::127.0.0.1', 'reserved'],
    ['64:ff9b::7f00:1', 'translated'],
    ['64:ff9b:1::1', 'translated'],
    ['2002:7f00:1::', 'translated'],
    ['2001:0:1::1', 'translated'],
    ['4000::1', 'reserved'],
  ])('[A7] %s is %s, and an allowed name that leads there is denied', (text, kind) => {
    const address = parseAddress(text);
    expect(address === undefined ? undefined : classOf(address)).toBe(kind);
    for (const mode of ['deny', 'dangerously-allow-all', 'learn'] as const) {
      expect(addressVerdict({ mode, allow: ['x.com'] }, text)).toBe('private_address');
      expect(addressVerdict({ mode, allow: ['x.com'] }, '93.184.216.34')).toBe('allowed');
      expect(addressVerdict({ mode, allow: ['x.com'] }, '2606:2800:220:1::1')).toBe('allowed');
    }
  });

  it('[A7] a range that is named opens it, for its ports, and never the metadata service by the way', () => {
    expect(addressVerdict({ allow: ['x.com', '10.1.0.0/16'] }, '10.1.2.3')).toBe('allowed');
    expect(addressVerdict({ allow: ['x.com', '10.1.0.0/16'] }, '10.2.2.3')).toBe('private_address');
    expect(addressVerdict({ allow: ['10.1.0.0/16:5432'] }, '10.1.2.3', 443)).toBe('private_address');
    expect(addressVerdict({ allow: ['10.1.0.0/16:5432'] }, '10.1.2.3', 5432)).toBe('allowed');
    expect(addressVerdict({ allow: ['[fd12::/16]:443'] }, 'fd12::1')).toBe('allowed');
    expect(addressVerdict({ allow: ['169.254.0.0/16'] }, '169.254.1.1')).toBe('allowed');
    expect(addressVerdict({ allow: ['169.254.0.0/16'] }, '169.254.169.254')).toBe('private_address');
    expect(addressVerdict({ allow: ['169.254.169.254'] }, '169.254.169.254')).toBe('allowed');
    expect(addressVerdict({ allow: ['127.0.0.0/8'] }, '::ffff:127.0.0.1')).toBe('private_address');
    expect(addressVerdict({ allow: ['10.0.0.0/8'], deny: ['10.1.0.0/16'] }, '10.1.0.1')).toBe(
      'denied_by_rule',
    );
  });

  it('[A7] a literal needs a rule that names it, also a public one', () => {
    expect(allows({ allow: ['**.x.com', 'x.com'] }, '93.184.216.34')).toBe(false);
    expect(allows({ allow: ['93.184.216.34'] }, '93.184.216.34')).toBe(true);
    expect(allows({ allow: ['2606:2800::/32'] }, '2606:2800::1')).toBe(true);
  });
});

describe('what a resolver is told', () => {
  it('[A7] gives the ports on which a name may be reached, and nothing for the others', () => {
    const policy = parsePolicy({
      allow: ['x.com', 'db.x.com:5432/tcp', '*.y.com'],
      deny: ['bad.y.com', 'x.com:80'],
    });
    const ports = (host: string) => portsFor(policy, destination(host))?.ports;
    expect(ports('x.com')).toEqual([443]);
    expect(ports('db.x.com')).toEqual([5432]);
    expect(ports('a.y.com')).toEqual([80, 443]);
    expect(ports('bad.y.com')).toBeUndefined();
    expect(ports('evil.com')).toBeUndefined();
    expect(portsFor(policy, destination('a.y.com'))?.isWildcard).toBe(true);
    expect(portsFor(policy, destination('x.com'))?.isWildcard).toBe(false);
  });
});
