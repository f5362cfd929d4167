/**
 * The entry of the gate's thread, and what constructs it. It reads the secrets from the same files as the daemon does: a change of either is
 * the other's from the next request on.
 */

import { parentPort, workerData } from 'node:worker_threads';
import { PhantomRegistry } from '../gate/credentials/phantoms.ts';
import { dnsResolver } from '../gate/resolver.ts';
import { serveBoxes } from '../gate/thread/serve-boxes.ts';
import { upstreamTls } from '../gate/tls/system-roots.ts';
import { systemKeyring } from '../store/keyring.ts';
import { openSecrets } from '../store/secrets.ts';
import type { GateThreadData } from './gate-thread-data.ts';

const { stateDir, dnsServers, extraRoots } = workerData as GateThreadData;
if (parentPort === null) throw new Error('this is the entry of a thread');
serveBoxes({
  port: parentPort,
  resolver: dnsResolver(dnsServers),
  secrets: {
    source: openSecrets(stateDir, () => new Date(), systemKeyring(process.platform)),
    registry: new PhantomRegistry(),
    upstreamTls: upstreamTls(extraRoots),
  },
});
