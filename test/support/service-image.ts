/**
 * An image with a real PostgreSQL and a real Redis, made of Debian's packages on top of the test image. It begins as root, as
 * official images of services do, and gives root up by itself.
 */

import { testEngine } from './engine.ts';
import { canPackageImages, packagedImage } from './packaged-image.ts';

const packages = [
  'postgresql-15',
  'postgresql-client-15',
  'redis-server',
  'redis-tools',
  // What their programs are linked with and the test image has not.
  ...['libcom-err2', 'libffi8', 'libgmp10', 'libgnutls30', 'libgssapi-krb5-2', 'libhogweed6', 'libicu72'],
  ...['libidn2-0', 'libjemalloc2', 'libk5crypto3', 'libkeyutils1', 'libkrb5-3', 'libkrb5support0'],
  ...['libldap-2.5-0', 'liblua5.1-0', 'liblzf1', 'libatomic1', 'libnettle8', 'libp11-kit0', 'libpq5'],
  ...['libreadline8', 'libsasl2-2', 'libssl3', 'libstdc++6', 'libsystemd0', 'libtasn1-6', 'libunistring2'],
  ...['libxml2', 'libxslt1.1', 'tzdata'],
];

const dockerfile = (image: string): string => `FROM ${image}
COPY rootfs/usr /usr
USER root
RUN echo 'postgres:x:999:999::/var/lib/postgresql:/bin/sh' >>/etc/passwd && \\
    mkdir -p /var/lib/postgresql/data && chown -R 999:999 /var/lib/postgresql && \\
    setpriv --reuid 999 --regid 999 --clear-groups /usr/lib/postgresql/15/bin/initdb --no-sync --auth=trust -D /var/lib/postgresql/data && \\
    echo 'host all all all trust' >>/var/lib/postgresql/data/pg_hba.conf
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
`;

/** Starts as root, owns its folder anew as official images do, and goes on as another user. */
export const postgresCommand = [
  'sh',
  '-c',
  'chown -R 999:999 /var/lib/postgresql && exec setpriv --reuid 999 --regid 999 --clear-groups ' +
    "postgres -D /var/lib/postgresql/data -c listen_addresses='*' -c fsync=off -c unix_socket_directories=/tmp",
];

export const redisCommand = ['redis-server', '--protected-mode', 'no', '--save', ''];

export const canMakeServiceImage = canPackageImages;

export async function serviceImage(): Promise<string> {
  return await packagedImage({
    repository: 'sallyport-test-services',
    packages,
    dockerfile: dockerfile(testEngine().image),
    unused: ['usr/share/locale', 'usr/share/doc', 'usr/share/man', 'usr/lib/postgresql/15/lib/bitcode'],
  });
}
