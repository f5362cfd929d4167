/** The table of all routes. */

import type { Route } from '../route.ts';
import { adminRoutes } from './admin.ts';
import { auditRoutes } from './audit.ts';
import { browserRoutes } from './browser.ts';
import { changeRoutes } from './changes.ts';
import { eventRoutes } from './events.ts';
import { execRoutes } from './execs.ts';
import { fileRoutes } from './files.ts';
import { guardRoutes } from './guard.ts';
import { healthRoutes } from './health.ts';
import { imageRoutes } from './images.ts';
import { mcpRoutes } from './mcp.ts';
import { netRoutes } from './net.ts';
import { portRoutes } from './ports.ts';
import { previewRoutes } from './previews.ts';
import { sandboxRoutes } from './sandboxes.ts';
import { secretRoutes } from './secrets.ts';
import { serviceRoutes } from './services.ts';

export const allRoutes: readonly Route[] = [
  ...healthRoutes,
  ...sandboxRoutes,
  ...serviceRoutes,
  ...portRoutes,
  ...previewRoutes,
  ...browserRoutes,
  ...execRoutes,
  ...fileRoutes,
  ...changeRoutes,
  ...netRoutes,
  ...eventRoutes,
  ...secretRoutes,
  ...imageRoutes,
  ...guardRoutes,
  ...auditRoutes,
  ...mcpRoutes,
  ...adminRoutes,
];
