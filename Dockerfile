# taskhost in an image of its own: one static binary, no shell, not root.
#
#   docker build -t taskhost .
#   docker run -p 127.0.0.1:7070:7070 -v taskhost:/data taskhost

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build && mkdir -p /out/data /out/tmp && cp bin/taskhost /out/

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/taskhost /taskhost
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/tmp /tmp
USER 65532:65532
VOLUME /data
EXPOSE 7070
# This version has no login: publish the port on loopback, or behind something that asks who is there.
ENTRYPOINT ["/taskhost"]
CMD ["serve", "--data-dir", "/data", "--listen", "0.0.0.0:7070", "--insecure-no-login"]
