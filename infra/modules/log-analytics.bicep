// Where the container's output and the platform's own events go.

param name string
param location string
param tags object

@description('What is beyond it on one day is dropped: a flood of log lines must not become a bill.')
param dailyQuotaGb int = 1

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-07-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    sku: { name: 'PerGB2018' }
    // the days that cost nothing extra
    retentionInDays: 30
    workspaceCapping: { dailyQuotaGb: dailyQuotaGb }
  }
}

output name string = workspace.name
