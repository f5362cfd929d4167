/** `sally image bootstrap`: makes sure that the base image, or the test image, is in the engine. */

import { formatSize } from '../../lib/sizes.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { howMade, installConsent } from '../made-image.ts';
import { print, printJson } from '../output.ts';
import { progressLine } from '../progress-line.ts';

export interface ImageBootstrapOptions {
  readonly test?: true;
  readonly offline?: true;
  readonly rebuild?: true;
  readonly yes?: true;
  readonly json?: true;
}

export async function imageBootstrapCommand(
  options: ImageBootstrapOptions,
  { signal }: CliContext,
): Promise<number> {
  const { makeImageHere } = await import('../../setup/images.ts');
  const line = progressLine();
  const made = await makeImageHere(options.test === true ? 'test' : 'base', {
    progress: line.report,
    consent: installConsent(line, options.yes === true, signal),
    offline: options.offline === true,
    rebuild: options.rebuild === true,
    signal,
  }).finally(line.done);
  if (options.json === true) printJson(made);
  else {
    const seconds = (made.durationMs / 1000).toFixed(1);
    print(`${made.reference}  ${formatSize(made.sizeBytes)}  ${howMade[made.how]}  ${seconds} s`);
  }
  return exitCode.ok;
}
