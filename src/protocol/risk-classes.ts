/** The classes of risk of a command and where it may run, as files, the API and the judge name them. */

/** From the least to the worst. */
export const riskClasses = [
  'safe',
  'local_write',
  'network',
  'system_write',
  'install',
  'code_execution',
  'unknown',
  'destructive',
  'blocked',
] as const;

export type RiskClass = (typeof riskClasses)[number];

export const commandRoutes = ['host', 'sandbox', 'deny'] as const;
export type CommandRoute = (typeof commandRoutes)[number];
