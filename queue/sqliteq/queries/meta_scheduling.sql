UPDATE meta SET scheduling = ?;
