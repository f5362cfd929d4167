/** `sally image bootstrap`: makes sure that the base image, or the test image, is in the engine. */

import { formatSize } from '../../lib/sizes.ts';
import { readCliEnvironment } from '../config.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { progressLine } from '../progress-line.ts';

export interface ImageBootstrapOptions {
  readonly test?: true;
  readonly offline?: true;
  readonly rebuild?: true;
  readonly yes?: true;
  readonly json?: true;
}

const howWords = {
  present: 'already there',
  pulled: 'built on a pulled image',
  bootstrapped: "made from the distribution's packages",
} as const;

export async function imageBootstrapCommand(
  options: ImageBootstrapOptions,
  { signal }: CliContext,
): Promise<number> {
  const [{ makeImageHere }, { askConsent }] = await Promise.all([
    import('../../setup/images.ts'),
    import('../../setup/ask-consent.ts'),
  ]);
  const line = progressLine();
  const made = await makeImageHere(options.test === true ? 'test' : 'base', {
    progress: line.report,
    consent: async (packages) => {
      line.done();
      const agreed = options.yes === true || readCliEnvironment().ci;
      return await askConsent({ what: `${packages.join(', ')} with apt-get`, agreed, say: note }, signal);
    },
    offline: options.offline === true,
    rebuild: options.rebuild === true,
    signal,
  }).finally(line.done);
  if (options.json === true) printJson(made);
  else {
    const seconds = (made.durationMs / 1000).toFixed(1);
    print(`${made.reference}  ${formatSize(made.sizeBytes)}  ${howWords[made.how]}  ${seconds} s`);
  }
  return exitCode.ok;
}
