/**
 * Names that a caller cannot choose, because Sallyport tells its own objects and its own variables by them.
 *
 * Nothing else is reserved. A variable such as LD_PRELOAD or PATH changes only what runs inside the sandbox, where its
 * owner may break what he likes; porter is a static program and takes nothing from it.
 */

export const reservedLabelPrefix = 'dev.sallyport.';
export const reservedEnvPrefix = 'SALLYPORT_';

export const isReservedLabel = (name: string): boolean => name.toLowerCase().startsWith(reservedLabelPrefix);
export const isReservedEnv = (name: string): boolean => name.toUpperCase().startsWith(reservedEnvPrefix);
