/** What a sandbox's user and group are called inside. Pure. */

const nobody = 65534;

export const userName = (uid: number): string => (uid === nobody ? 'nobody' : 'sally');

export const groupName = (gid: number): string => (gid === nobody ? 'nogroup' : 'sally');
