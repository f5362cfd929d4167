/** What the verbs that make images have in common: the question before packages are installed, and the word for how one came about. */

import { readCliEnvironment } from './config.ts';
import { note } from './output.ts';
import { progressLine } from './progress-line.ts';

export const howMade = {
  present: 'already there',
  pulled: 'built on a pulled image',
  built: 'built on the base image',
  bootstrapped: "made from the distribution's packages",
} as const;

/** Asked on a terminal; `--yes` and CI are a yes. */
export function installConsent(
  line: ReturnType<typeof progressLine>,
  yes: boolean,
  signal: AbortSignal,
): (packages: readonly string[]) => Promise<boolean> {
  return async (packages) => {
    line.done();
    const { askConsent } = await import('./ask.ts');
    const agreed = yes || readCliEnvironment().ci;
    return await askConsent({ what: `${packages.join(', ')} with apt-get`, agreed }, signal);
  };
}

/** Before sandboxes that are made side by side: none of them could show how far it is, nor ask. */
export async function provideTemplateImage(
  template: string,
  options: { readonly rebuild: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { hasTemplateImage } = await import('../setup/provision.ts');
  if (options.rebuild || !(await hasTemplateImage(template, signal)))
    await makeTemplateImage(template, options, signal);
}

/** The image of a template, made where it is missing, or anew. */
export async function makeTemplateImage(
  template: string,
  options: { readonly rebuild: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { provisionTemplate } = await import('../setup/provision.ts');
  const line = progressLine();
  const consent = installConsent(line, false, signal);
  const work = provisionTemplate(template, {
    ...options,
    progress: line.report,
    asBase: false,
    consent,
    signal,
  });
  const { reference } = await work.finally(line.done);
  note(`made ${reference}`);
}
