/** The place of services here: there are none, and none can be made. */

import { SallyportError } from '../../protocol/errors.ts';
import type { ServiceEngine } from '../../sandboxes/ports/services.ts';

const refuse = async (): Promise<never> => {
  throw new SallyportError('services_unsupported', 'bubblewrap has no containers, and so no services');
};

export const noServices: ServiceEngine = {
  image: refuse,
  createNetwork: refuse,
  networks: async () => [],
  takenSubnets: async () => [],
  removeNetwork: async () => {},
  reconnect: refuse,
  create: refuse,
  list: async () => [],
  check: refuse,
  // biome-ignore lint/correctness/useYield: there is nothing to give out
  logs: async function* () {
    await refuse();
  },
};
