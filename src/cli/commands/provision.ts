/** `sally provision`: makes the image of a template, or the base image out of what a sandbox is made of, and proves it first. */

import { formatSize } from '../../lib/sizes.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { howMade, installConsent } from '../made-image.ts';
import { note, print, printJson } from '../output.ts';
import { progressLine } from '../progress-line.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export interface ProvisionCommandOptions {
  readonly asBase?: true;
  readonly offline?: true;
  readonly rebuild?: true;
  readonly yes?: true;
  readonly json?: true;
}

export async function provisionCommand(
  what: string,
  options: ProvisionCommandOptions,
  context: CliContext,
): Promise<number> {
  const { signal } = context;
  const { isTemplate, provisionImage, provisionTemplate } = await import('../../setup/provision.ts');
  const line = progressLine();
  const common = {
    progress: line.report,
    offline: options.offline === true,
    rebuild: options.rebuild === true,
    signal,
  };
  const work = isTemplate(what)
    ? provisionTemplate(what, {
        ...common,
        asBase: options.asBase === true,
        consent: installConsent(line, options.yes === true, signal),
      })
    : imageOfSandbox(what, context).then((imageId) => provisionImage(imageId, common));
  const made = await work.finally(line.done);
  if (options.json === true) printJson(made);
  else {
    const seconds = (made.duration_ms / 1000).toFixed(1);
    print(`${made.reference}  ${formatSize(made.size_bytes)}  ${howMade[made.how]}  ${seconds} s`);
    if (made.base !== undefined) note(`sandboxes that name no image get it, as ${made.base}`);
  }
  return exitCode.ok;
}

async function imageOfSandbox(box: string, { signal }: CliContext): Promise<string> {
  const calls = new SandboxCalls();
  try {
    return (await calls.provisionSource(box, { signal })).image_id;
  } catch (cause) {
    if (!isSallyportError(cause, 'sandbox_not_found')) throw cause;
    const message = `${JSON.stringify(box)} is neither a template nor a sandbox`;
    throw new SallyportError('template_unknown', message, { cause, details: { template: box } });
  } finally {
    calls.close();
  }
}
