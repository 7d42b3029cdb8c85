// Copy it to main.bicepparam and fill in. Secrets come from the environment of whoever runs `az`, never from this file.
using 'main.bicep'

param workload = 'mcpprobe'
param environmentName = 'prod'
// empty for the first deployment: there is no registry yet that could have an image
param image = readEnvironmentVariable('IMAGE', '')
param customDomain = ''
param githubRepository = 'OWNER/NAME'
param minReplicas = 1
param toolhostSecret = readEnvironmentVariable('TOOLHOST_SECRET', '')
param requestStateKeys = readEnvironmentVariable('REQUEST_STATE_KEYS', '')
