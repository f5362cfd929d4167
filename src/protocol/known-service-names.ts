/** Apart from the schemas, which a command line need not load. */

export const knownServices = ['anthropic', 'anthropic-oauth', 'openai', 'github'] as const;
export type KnownService = (typeof knownServices)[number];
