/** The container of one service, and what is asked to know whether it is healthy. */

import { checkCommand, serviceCapabilities, serviceLimits, type WantedService } from '../policy/services.ts';
import type { ServiceRequest } from '../protocol/box.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import { diskNote } from './disk-note.ts';
import { hostUserEnvironment } from './exec-environment.ts';
import type { SandboxRecord } from './records.ts';
import { type HealthSubject, type HealthTimes, usualHealthTimes } from './service-health.ts';
import type { SandboxWorld, Tell } from './world.ts';

const mostWordsBytes = 1024;
const lastLines = 10;
/** Shorter values are words that occur by chance. */
const shortestSecret = 4;

export async function makeServiceContainer(
  world: SandboxWorld,
  record: SandboxRecord,
  service: WantedService,
  { tell, signal }: { readonly tell: Tell; readonly signal: AbortSignal },
): Promise<{ readonly id: string; readonly capabilities: readonly string[] }> {
  const { services, images, owner } = world;
  const image = await images.provide({ image: service.image }, { progress: tell, signal });
  signal.throwIfAborted();
  const capabilities = serviceCapabilities((await services.image(image.id, signal)).user);
  // Not cancelled half-way: a create whose answer is not awaited would leave a container that nobody knows.
  const request = serviceRequest(record, service, { image: image.id, capabilities, owner });
  const id = await services.create(request, diskNote(world, record));
  return { id, capabilities };
}

/** What an engine is asked for; pure. */
export function serviceRequest(
  {
    containerName,
    id,
    name,
    plan,
  }: Pick<SandboxRecord, 'containerName' | 'name' | 'plan'> & { readonly id: string },
  service: WantedService,
  made: { readonly image: string; readonly capabilities: readonly string[]; readonly owner: string },
): ServiceRequest {
  return {
    name: `${containerName}-${service.name}`,
    image: made.image,
    network: { name: containerName, alias: service.name },
    env: { ...hostUserEnvironment(plan), ...service.envs },
    capabilities: made.capabilities,
    limits: serviceLimits(service, plan.limits.diskBytes),
    labels: ownedLabels('service', {
      [label.owner]: made.owner,
      [label.id]: id,
      [label.name]: name,
      [label.service]: service.name,
    }),
    ...(service.command === undefined ? {} : { command: service.command }),
  };
}

/** What the spec says of its health, else what its image says. */
export async function serviceHealth(
  { services, engine, images }: SandboxWorld,
  service: WantedService,
  containerId: string,
  signal: AbortSignal,
): Promise<{ readonly subject: HealthSubject; readonly times: HealthTimes }> {
  const { healthcheck } = service;
  const times = healthcheck ?? usualHealthTimes;
  const shown = (text: string): string => withoutSecrets(text, service).slice(-mostWordsBytes).trim();
  let argv = checkCommand(healthcheck?.test);
  if (healthcheck === undefined) {
    const image = await images.provide({ image: service.image }, { progress: () => {}, signal });
    argv = checkCommand((await services.image(image.id, signal)).check);
  }
  const check = argv;
  return {
    times,
    subject: {
      name: service.name,
      check:
        check === undefined
          ? undefined
          : async () => {
              signal.throwIfAborted();
              const result = await services.check(containerId, check, { timeoutMs: times.timeout, signal });
              return { ...result, output: shown(result.output) };
            },
      state: () => engine.find(containerId),
      lastWords: async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of services.logs(containerId, { tail: lastLines })) chunks.push(chunk);
        return shown(Buffer.concat(chunks).toString('utf8'));
      },
      pause: (ms) => pauseUnlessAborted(ms, signal),
      nowMs: () => performance.now(),
    },
  };
}

/** SECURITY: what a service prints goes into errors and events, and it may print what it was given. */
export function withoutSecrets(text: string, { envs = {} }: Pick<WantedService, 'envs'>): string {
  const values = Object.values(envs).filter((value) => value.length >= shortestSecret);
  return values
    .sort((a, b) => b.length - a.length)
    .reduce((shown, value) => shown.replaceAll(value, '***'), text);
}

async function pauseUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
