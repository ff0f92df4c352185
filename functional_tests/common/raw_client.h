/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTTP client that sends bytes unchanged and reads responses.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_RAW_CLIENT_H
#define XM_FUNCTIONAL_TESTS_COMMON_RAW_CLIENT_H

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

struct Response {
    int status = 0; /* 0: no complete response */
    std::string head, body;
};

class RawClient
{
  public:
    explicit RawClient(uint16_t port)
    {
        sockaddr_in a = {};
        a.sin_family = AF_INET;
        a.sin_port = htons(port);
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr *>(&a), sizeof(a)), 0);
    }
    ~RawClient()
    {
        leave();
    }
    RawClient(const RawClient &) = delete;

    void leave()
    {
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    /* Closes the sending side; responses can still be read. */
    void close_side() const
    {
        shutdown(fd, SHUT_WR);
    }
    bool send(const std::string &bytes) const
    {
        size_t at = 0;
        while (at < bytes.size()) {
            const ssize_t n =
                ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
            if (n <= 0)
                return false;
            at += (size_t)n;
        }
        return true;
    }
    static std::string request(const std::string &path, const std::string &body,
                               const std::string &more = "")
    {
        return "POST " + path +
               " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               "Content-Length: " +
               std::to_string(body.size()) + "\r\n" + more + "\r\n" + body;
    }
    static std::string get(const std::string &path, const std::string &method = "GET",
                           const std::string &more = "")
    {
        return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
    }

    /* Reads until the buffer contains `part`. Returns false if the server closed the connection
     * or sent nothing for 30 s. */
    bool wait_for(const std::string &part)
    {
        while (left.find(part) == std::string::npos)
            if (!more())
                return false;
        return true;
    }
    /* Returns whether the server closes the connection, after whatever it sends. */
    bool is_closed()
    {
        while (more())
            ;
        return closed;
    }
    Response read(bool has_body = true)
    {
        Response r;
        if (!wait_for("\r\n\r\n"))
            return r;
        const size_t end = left.find("\r\n\r\n") + 4;
        r.head = left.substr(0, end);
        left.erase(0, end);
        const std::string length = value("Content-Length: ", r.head);
        if (!has_body)
            r.body = "";
        else if (!length.empty()) {
            const size_t n = std::stoul(length);
            while (left.size() < n)
                if (!more())
                    return r;
            r.body = left.substr(0, n);
            left.erase(0, n);
        } else if (!read_chunks(r.body)) {
            return r;
        }
        r.status = std::stoi(r.head.substr(9, 3));
        return r;
    }
    static std::string value(const std::string &name, const std::string &head)
    {
        const size_t at = head.find(name);
        return at == std::string::npos
                   ? ""
                   : head.substr(at + name.size(),
                                 head.find("\r\n", at) - at - name.size());
    }

    std::string left; /* bytes that were received and not consumed */

  private:
    int fd;
    bool closed = false;

    bool more()
    {
        char bytes[4096];
        pollfd p = {fd, POLLIN, 0};
        if (closed || poll(&p, 1, 30000) <= 0)
            return false;
        const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
        closed = n <= 0;
        if (n > 0)
            left.append(bytes, (size_t)n);
        return n > 0;
    }
    bool read_chunks(std::string &body)
    {
        for (;;) {
            if (!wait_for("\r\n"))
                return false;
            const size_t line = left.find("\r\n"), n = std::stoul(left, nullptr, 16);
            while (left.size() < line + 2 + n + 2)
                if (!more())
                    return false;
            body += left.substr(line + 2, n);
            left.erase(0, line + 2 + n + 2);
            if (n == 0)
                return true;
        }
    }
};

#endif
