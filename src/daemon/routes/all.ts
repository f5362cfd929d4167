/** The table of all routes. */

import type { Route } from '../route.ts';
import { adminRoutes } from './admin.ts';
import { changeRoutes } from './changes.ts';
import { eventRoutes } from './events.ts';
import { execRoutes } from './execs.ts';
import { fileRoutes } from './files.ts';
import { healthRoutes } from './health.ts';
import { sandboxRoutes } from './sandboxes.ts';

export const allRoutes: readonly Route[] = [
  ...healthRoutes,
  ...sandboxRoutes,
  ...execRoutes,
  ...fileRoutes,
  ...changeRoutes,
  ...eventRoutes,
  ...adminRoutes,
];
