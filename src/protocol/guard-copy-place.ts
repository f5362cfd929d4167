/**
 * Where the copy of a folder for a guarded command is: `<state folder>/guard-copies/<its process>/folder`. The client makes it
 * there, and the rules of the daemon let it be mounted from there.
 */

export const guardCopiesName = 'guard-copies';
export const guardCopyName = 'folder';
