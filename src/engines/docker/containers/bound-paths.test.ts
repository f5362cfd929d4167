import { expect, it } from 'vitest';
import { connectionTo, httpServer } from '../../../../test/support/little-engine.ts';
import { boundPaths } from './bound-paths.ts';

const container = (id: string, state: string) => ({
  Id: id,
  State: state,
  Mounts: [
    { Type: 'bind', Source: `/host/${id}`, Destination: '/workspace' },
    { Type: 'volume', Source: `/volumes/${id}` },
  ],
});

it('are those of containers that run or are about to, without one that the caller knows as stopped', async () => {
  const rows = ['running', 'created', 'paused', 'exited', 'dead', 'removing'].map((state) =>
    container(state, state),
  );
  const path = await httpServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify([...rows, container('own', 'running')]));
  });
  const bound = ['/host/running', '/host/created', '/host/paused'];
  expect([...(await boundPaths(connectionTo(path), undefined))]).toEqual([...bound, '/host/own']);
  expect([...(await boundPaths(connectionTo(path), 'own'))]).toEqual(bound);
});

it('are also the places in a bind that something else is mounted on', async () => {
  const mounts = [
    { Type: 'bind', Source: '/home/me/.npm', Destination: '/home/sally/.npm' },
    { Type: 'bind', Source: '/state/own', Destination: '/home/sally/.npm/_npx' },
    { Type: 'bind', Source: '/elsewhere', Destination: '/home/sally/.npmrc' },
  ];
  const path = await httpServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify([{ Id: 'one', State: 'running', Mounts: mounts }]));
  });
  expect([...(await boundPaths(connectionTo(path), undefined))]).toEqual([
    '/home/me/.npm',
    '/state/own',
    '/home/me/.npm/_npx',
    '/elsewhere',
  ]);
});
