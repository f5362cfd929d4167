/**
 * Images without bash, coreutils and a shared C library, like alpine: Debian's static busybox and
 * nothing else. `homeless`: its user has no home and cannot make one.
 */

import { canPackageImages, packagedImage } from './packaged-image.ts';

export const canMakeBusyboxImage = canPackageImages;

const dockerfile = `FROM scratch
COPY rootfs/bin /bin
ENV PATH=/bin
RUN ["/bin/busybox", "--install", "-s", "/bin"]
RUN mkdir -p /etc /root /tmp && chmod 1777 /tmp && echo 'root:x:0:0::/root:/bin/sh' >/etc/passwd && echo busybox >/etc/made-of
CMD ["/bin/sh"]
`;

const homeless = `RUN echo 'worker:x:1234:1234::/nonexistent:/bin/sh' >>/etc/passwd && mkdir -m 555 /home && echo homeless >/etc/made-of
ENV HOME=/nonexistent
USER 1234
`;

export async function busyboxImage(kind: 'plain' | 'homeless'): Promise<string> {
  return await packagedImage({
    repository: 'sallyport-test-busybox',
    packages: ['busybox-static'],
    dockerfile: kind === 'plain' ? dockerfile : `${dockerfile}${homeless}`,
    unused: ['usr'],
  });
}
