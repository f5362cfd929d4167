/** The place of images here: there is one, this machine's own system, and nothing of it is ever changed. */

import { createHash } from 'node:crypto';
import { SallyportError } from '../../protocol/errors.ts';
import type { BoxHome, BoxImages, ImageChoice, ProvidedImage } from '../../sandboxes/ports.ts';

const hostImage: ProvidedImage = {
  reference: 'host',
  id: 'host',
  env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
};

export class HostImages implements BoxImages {
  readonly #homes = new Map<string, BoxHome>();

  async provide(choice: ImageChoice): Promise<ProvidedImage> {
    const { image, agent, approvedDockerfile } = choice;
    if (image === undefined && agent === undefined && approvedDockerfile === undefined) return hostImage;
    throw new SallyportError('engine_unsupported', 'bubblewrap has no images: a sandbox has this system', {
      advice: 'Leave `image`, `agent` and `build` out, or use Docker (`--engine docker`).',
    });
  }

  /** A name for what the box is made with right after; what is made of it is kept with the box. */
  async forUser(_image: ProvidedImage, home: BoxHome): Promise<string> {
    const key = `host@${createHash('sha256').update(JSON.stringify(home)).digest('hex').slice(0, 16)}`;
    this.#homes.set(key, home);
    return key;
  }

  homeOf(reference: string): BoxHome {
    const home = this.#homes.get(reference);
    if (home === undefined) throw new Error(`nobody asked for ${reference}`);
    return home;
  }

  async pruneDerived(): Promise<number> {
    return 0;
  }
}
