/** Services whose tokens need no flags: to which hosts they go, in which headers, and how programs are told of them. */

import type { KnownService } from '../protocol/known-service-names.ts';
import type { SecretBinding } from '../protocol/secrets.ts';

export const serviceBindings: Readonly<Record<KnownService, SecretBinding>> = {
  anthropic: {
    hosts: ['api.anthropic.com'],
    port: 443,
    headers: ['x-api-key', 'authorization'],
    env: ['ANTHROPIC_API_KEY'],
    prefix: 'sk-ant-api03-',
    base_url: { env: 'ANTHROPIC_BASE_URL', path: '' },
    check_path: '/v1/models',
  },
  // What `claude setup-token` makes: another variable, and never the header of a key.
  'anthropic-oauth': {
    hosts: ['api.anthropic.com'],
    port: 443,
    headers: ['authorization'],
    env: ['CLAUDE_CODE_OAUTH_TOKEN'],
    prefix: 'sk-ant-oat01-',
    base_url: { env: 'ANTHROPIC_BASE_URL', path: '' },
  },
  openai: {
    hosts: ['api.openai.com'],
    port: 443,
    headers: ['authorization'],
    env: ['OPENAI_API_KEY'],
    prefix: 'sk-proj-',
    base_url: { env: 'OPENAI_BASE_URL', path: '/v1' },
    check_path: '/v1/models',
  },
  github: {
    hosts: ['api.github.com', 'github.com', 'uploads.github.com', 'codeload.github.com'],
    port: 443,
    headers: ['authorization'],
    env: ['GITHUB_TOKEN', 'GH_TOKEN'],
    prefix: 'ghp_',
    check_path: '/user',
  },
};

/** Tokens of Anthropic say themselves of which kind they are, and each kind goes another way. */
export function serviceOfToken(service: KnownService, value: string | undefined): KnownService {
  if (value === undefined || (service !== 'anthropic' && service !== 'anthropic-oauth')) return service;
  return value.startsWith('sk-ant-oat') ? 'anthropic-oauth' : 'anthropic';
}
