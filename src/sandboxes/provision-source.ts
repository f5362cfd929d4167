/** The image of a sandbox that may become the base image: one of a sandbox that has nothing of its user's. */

import { provisionRefusals } from '../policy/provision-source.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { ProvisionSourceView } from '../protocol/views.ts';
import type { SandboxRecord } from './records.ts';

export function requireProvisionSource(record: SandboxRecord, execs: number): ProvisionSourceView {
  const reasons = provisionRefusals(record.spec, execs);
  if (reasons.length > 0) {
    throw new SallyportError(
      'provision_refused',
      `${record.name} cannot become the base image: ${reasons.join('; ')}`,
      { details: { sandbox: record.name, reasons } },
    );
  }
  if (record.imageId === undefined) {
    throw new SallyportError('image_missing', `the image of ${record.name} is not known yet`, {
      details: { sandbox: record.name },
      advice: 'Wait until the sandbox is ready, then try again.',
    });
  }
  return { image: record.image, image_id: record.imageId };
}
