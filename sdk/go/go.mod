module github.com/taskhost/taskhost/sdk/go

go 1.24
