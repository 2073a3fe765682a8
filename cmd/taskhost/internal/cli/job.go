package cli

import "github.com/spf13/cobra"

func (a *App) jobCommand() *cobra.Command {
	return newGroup("job", "Look at and steer jobs",
		a.jobGetCommand(), a.jobListCommand(), a.jobWaitCommand(), a.jobWhyCommand(), a.jobCancelCommand(), a.jobRetryCommand(),
		a.jobLogsCommand(), a.jobDeleteCommand())
}
