/** Lists of hosts by a short name: what a package manager or a service needs for reading, and nothing beside it. */

import type { EgressPresetName } from '../../protocol/egress-preset-names.ts';

export interface EgressPreset {
  readonly about: string;
  readonly allow: readonly string[];
}

export const egressPresets: Readonly<Record<EgressPresetName, EgressPreset>> = {
  npm: {
    about: 'packages of npm, yarn and pnpm',
    allow: ['registry.npmjs.org', 'registry.yarnpkg.com', 'repo.yarnpkg.com'],
  },
  pypi: { about: 'packages of pip, uv and poetry', allow: ['pypi.org', 'files.pythonhosted.org'] },
  debian: {
    about: 'packages of apt on Debian',
    allow: ['deb.debian.org', 'security.debian.org', 'cdn-fastly.deb.debian.org'],
  },
  github: {
    about: 'repositories, releases, packages and the API of GitHub',
    allow: [
      'github.com',
      'api.github.com',
      'codeload.github.com',
      'raw.githubusercontent.com',
      'objects.githubusercontent.com',
      'release-assets.githubusercontent.com',
      'github.com:22/tcp',
    ],
  },
  crates: {
    about: 'packages of cargo, and rustup',
    allow: ['crates.io', 'index.crates.io', 'static.crates.io', 'static.rust-lang.org'],
  },
  go: {
    about: 'modules and toolchains of Go',
    allow: ['proxy.golang.org', 'sum.golang.org', 'go.dev', 'dl.google.com'],
  },
  anthropic: { about: 'the API of Anthropic', allow: ['api.anthropic.com'] },
  openai: { about: 'the API of OpenAI', allow: ['api.openai.com'] },
};
