/** What `egress.presets` may name. `policy/egress/presets.ts` says what each allows. */
export const egressPresetNames = [
  'npm',
  'pypi',
  'debian',
  'github',
  'crates',
  'go',
  'anthropic',
  'openai',
] as const;

export type EgressPresetName = (typeof egressPresetNames)[number];
