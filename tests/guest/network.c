// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first process of a guest whose kernel is Debian's own: brings up QEMU's network card, sends
 * a line to 10.0.2.100, port 7, prints the answer, and turns the machine off.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

static void end(const char *what)
{
	if (what)
		perror(what);
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	exit(1);
}

static struct sockaddr_in address(const char *text, int port)
{
	struct sockaddr_in found = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &found.sin_addr);
	return found;
}

static void set_up(int fd)
{
	struct sockaddr_in ours = address("10.0.2.15", 0), mask = address("255.255.255.0", 0);
	struct ifreq request = { .ifr_name = "eth0" };

	memcpy(&request.ifr_addr, &ours, sizeof(ours));
	if (ioctl(fd, SIOCSIFADDR, &request) < 0)
		end("address of eth0");
	memcpy(&request.ifr_netmask, &mask, sizeof(mask));
	if (ioctl(fd, SIOCSIFNETMASK, &request) < 0)
		end("netmask of eth0");
	request.ifr_flags = IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		end("eth0 up");
}

int main(void)
{
	struct sockaddr_in peer = address("10.0.2.100", 7);
	int module = open("/e1000.ko", O_RDONLY), fd;
	char answer[64];
	ssize_t n;

	if (syscall(SYS_finit_module, module, "", 0) < 0)
		end("e1000.ko");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	set_up(fd);
	if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) < 0)
		end("connect");
	if (write(fd, "through the network\n", 20) != 20)
		end("write");
	n = read(fd, answer, sizeof(answer));
	if (n < 0)
		end("read");
	printf("guest: %.*s", (int)n, answer);
	end(NULL);
}
